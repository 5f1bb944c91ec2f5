// Debug files of distributions are compressed: to unpack the C library's takes 60 ms each time,
// more than all else that a brief run costs. So what was needed once is kept unpacked.
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/kept_files.h"
#include "base/page.h"
#include "report/symbols/symbol_file.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t largest = 24u << 20;
constexpr std::string_view name_of_other_file = ".gnu_debugaltlink";

void align(std::string& file, std::size_t to) {
    if (to > 1) file.resize((file.size() + to - 1) / to * to);
}

template <class Header>
void put(std::string& file, std::size_t at, const Header* headers, std::size_t count) {
    std::memcpy(file.data() + at, headers, count * sizeof(Header));
}

// Nothing: there is nothing to unpack, it would be too large, or it needs another file beside it.
std::optional<std::string> unpacked(Elf* elf) {
    const auto* const header = elf64_getehdr(elf);
    std::size_t segments = 0, names = 0;
    if (!header || header->e_shnum == 0 || elf_getphdrnum(elf, &segments) != 0 ||
        elf_getshdrstrndx(elf, &names) != 0 || (segments > 0 && !elf64_getphdr(elf)))
        return {};
    std::string file(sizeof(Elf64_Ehdr) + segments * sizeof(Elf64_Phdr), 0);
    if (segments > 0) put(file, sizeof(Elf64_Ehdr), elf64_getphdr(elf), segments);
    std::vector<Elf64_Shdr> sections(header->e_shnum);
    bool was_packed = false;
    for (Elf_Scn* s = elf_nextscn(elf, nullptr); s; s = elf_nextscn(elf, s)) {
        const auto* described = elf64_getshdr(s);
        const auto* const name = described ? elf_strptr(elf, names, described->sh_name) : nullptr;
        if (!name || name == name_of_other_file) return {};
        if (described->sh_flags & SHF_COMPRESSED) {
            GElf_Chdr packed;
            if (!gelf_getchdr(s, &packed) || packed.ch_size > largest ||
                elf_compress(s, 0, 0) < 0 || !(described = elf64_getshdr(s)))
                return {};
            was_packed = true;
        }
        auto& section = sections.at(elf_ndxscn(s)) = *described;
        if (section.sh_type == SHT_NOBITS) continue;
        if (section.sh_addralign > page_size) return {};
        align(file, section.sh_addralign);
        section.sh_offset = file.size();
        const auto* const data = elf_getdata(s, nullptr);
        if (data && data->d_buf) file.append(static_cast<const char*>(data->d_buf), data->d_size);
        if (file.size() > largest || file.size() - section.sh_offset != section.sh_size) return {};
    }
    if (!was_packed) return {};
    align(file, alignof(Elf64_Shdr));
    auto first = *header;
    first.e_phoff = segments > 0 ? sizeof(Elf64_Ehdr) : 0;
    first.e_shoff = file.size();
    put(file, 0, &first, 1);
    file.resize(file.size() + sections.size() * sizeof(Elf64_Shdr));
    put(file, first.e_shoff, sections.data(), sections.size());
    return file;
}

std::string name_for(const std::string& build_id) {
    return "debug-" + build_id;
}

}  // namespace

// One that was cut short, or is no ELF file, is made again.
int open_unpacked(const std::string& build_id) {
    const int fd = open_kept_file(name_for(build_id), largest);
    if (fd < 0) return -1;
    Elf64_Ehdr first;
    struct stat status {};
    if (pread(fd, &first, sizeof first, 0) == sizeof first && fstat(fd, &status) == 0 &&
        std::memcmp(first.e_ident, ELFMAG, SELFMAG) == 0 &&
        first.e_shoff + first.e_shnum * sizeof(Elf64_Shdr) ==
            static_cast<std::uint64_t>(status.st_size))
        return fd;
    ::close(fd);
    return -1;
}

// By build id only: a program's own word for where its debug file is (a debug link) could lead to
// one that lies about a library of others.
bool keep_unpacked(const std::string& debug_directory, const std::string& build_id) {
    if (build_id.size() < 3) return false;
    const auto path = debug_directory + "/.build-id/" + build_id.substr(0, 2) + "/" +
                      build_id.substr(2) + ".debug";
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return false;
    std::optional<std::string> file;
    elf_version(EV_CURRENT);
    if (Elf* const elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, nullptr)) {
        file = unpacked(elf);
        elf_end(elf);
    }
    ::close(fd);
    if (file) write_kept_file(name_for(build_id), *file);
    return file.has_value();
}

}  // namespace shadowprof::report
