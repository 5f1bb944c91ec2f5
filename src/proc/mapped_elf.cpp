#include "proc/mapped_elf.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace shadowprof::proc {

std::optional<std::vector<LoadSegment>> read_segments(const ReadImage& read) {
    Elf64_Ehdr header;
    if (read(0, std::as_writable_bytes(std::span{&header, 1})) != sizeof header) return {};
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 ||
        header.e_phentsize != sizeof(Elf64_Phdr))
        return {};
    std::vector<Elf64_Phdr> program_headers(header.e_phnum);
    const auto bytes = std::as_writable_bytes(std::span{program_headers});
    if (read(header.e_phoff, bytes) != bytes.size()) return {};
    std::vector<LoadSegment> segments;
    for (const auto& p : program_headers)
        segments.push_back({.type = p.p_type,
                            .executable = (p.p_flags & PF_X) != 0,
                            .file_offset = p.p_offset,
                            .address = p.p_vaddr,
                            .file_size = p.p_filesz,
                            .memory_size = p.p_memsz});
    return segments;
}

std::string build_id_in(std::span<const std::byte> notes) {
    const auto padded = [](std::size_t size) { return (size + 3) & ~std::size_t{3}; };
    while (notes.size() >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        std::memcpy(&note, notes.data(), sizeof note);
        const auto name_at = sizeof note;
        const auto description_at = name_at + padded(note.n_namesz);
        const auto end = description_at + note.n_descsz;
        if (end > notes.size()) return {};
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
            std::memcmp(notes.data() + name_at, "GNU", 4) == 0) {
            std::string hex;
            for (const auto byte : notes.subspan(description_at, note.n_descsz))
                hex += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
            return hex;
        }
        notes = notes.subspan(std::min(padded(end), notes.size()));
    }
    return {};
}

}  // namespace shadowprof::proc
