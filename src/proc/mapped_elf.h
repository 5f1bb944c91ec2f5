// The parts of an ELF image that a process has mapped, found through its program headers: section
// headers are not in memory. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shadowprof::proc {

// Reads bytes of the image at an offset; returns how many it got.
using ReadImage = std::function<std::size_t(std::uint64_t offset, std::span<std::byte> into)>;

struct LoadSegment {
    std::uint32_t type = 0;
    bool executable = false;
    std::uint64_t file_offset = 0;
    std::uint64_t address = 0;  // link-time
    std::uint64_t file_size = 0;
    std::uint64_t memory_size = 0;
};

// Nothing if the bytes are not the beginning of a 64-bit x86 ELF image.
std::optional<std::vector<LoadSegment>> read_segments(const ReadImage& read);

// Lower-case hex; empty if the notes have none.
std::string build_id_in(std::span<const std::byte> notes);

}  // namespace shadowprof::proc
