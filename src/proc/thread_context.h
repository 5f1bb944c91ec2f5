// What threads publish of the request that they work for (OpenTelemetry's OTEP 4947), and what the
// process publishes of itself (OTEP 4719). All of it is written by the program: nothing is believed
// unless it is as the specifications say.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "proc/maps.h"
#include "proc/memory.h"

namespace shadowprof::proc {

// The thread-local variable that points to a thread's record.
inline constexpr std::string_view name_of_thread_context = "otel_thread_ctx_v1";

struct ThreadContext {
    struct Attribute {
        std::uint8_t key = 0;  // an index into the process's names
        std::string value;
        bool operator==(const Attribute&) const = default;
    };
    std::array<std::byte, 16> trace{};  // zeroes: none
    std::array<std::byte, 8> span{};
    std::vector<Attribute> attributes;  // by key, each once
    bool operator==(const ThreadContext&) const = default;
};

// Nothing if the record is not valid.
std::optional<ThreadContext> parse_thread_context(std::span<const std::byte> record);

// The bytes of the record that a variable points to. Empty: there is none. Nothing: it cannot be
// read, or was written meanwhile. The specification asks readers to stop the thread. One that runs
// is read twice: what it writes comes in order on this architecture, so two reads that agree, one
// after the other, are of one moment.
std::optional<std::vector<std::byte>> read_thread_context(const Memory& memory, Address variable,
                                                          bool is_stopped);

// The names of attributes, by key. Nothing if the process publishes none.
std::optional<std::vector<std::string>> attribute_names(const Memory& memory, const Maps& maps);
// From the payload of a process context: protocol buffers.
std::optional<std::vector<std::string>> attribute_names_in(std::span<const std::byte> payload);

}  // namespace shadowprof::proc
