#include "report/symbols/symbol_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace shadowprof::report {

namespace {

std::string build_id_of(Elf* elf) {
    const void* id = nullptr;
    const auto size = dwelf_elf_gnu_build_id(elf, &id);
    std::string hex;
    for (ssize_t i = 0; i < size; ++i)
        fmt::format_to(std::back_inserter(hex), "{:02x}", static_cast<const std::uint8_t*>(id)[i]);
    return hex;
}

bool is_x86_64(Elf* elf) {
    GElf_Ehdr header;
    return gelf_getehdr(elf, &header) && header.e_machine == EM_X86_64 &&
           header.e_ident[EI_CLASS] == ELFCLASS64;
}

// libdw would unpack a compressed file, to any size, before anybody asks what is in it.
bool begins_as_elf(int fd) {
    std::array<char, SELFMAG> bytes{};
    return ::pread(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()) &&
           std::equal(bytes.begin(), bytes.end(), ELFMAG);
}

bool is_no_file(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

// As libdwfl has it, which opens whatever has the right name: a pipe would keep it waiting. Folders
// for debug files are the user's own, but a link may also lead to the binary's.
int find_regular_debug_file(Dwfl_Module* module, void** user_data, const char* name,
                            Dwarf_Addr base, const char* file, const char* link, GElf_Word checksum,
                            char** found) {
    const std::string folder = file ? std::string(file, std::string_view(file).rfind('/') + 1) : "";
    for (const auto* const before : {"", ".debug/"})
        if (link && is_no_file((*link == '/' ? "" : folder + before) + link)) return -1;
    return dwfl_standard_find_debuginfo(module, user_data, name, base, file, link, checksum, found);
}

// The vDSO is an ELF image whose length is not recorded. It ends after its section headers, which
// come last.
std::size_t size_of_image(const std::byte* image) {
    const auto* header = reinterpret_cast<const Elf64_Ehdr*>(image);
    return header->e_shoff + std::size_t{header->e_shentsize} * header->e_shnum;
}

}  // namespace

std::unique_ptr<ElfImage> ElfImage::open(const std::string& path, const std::string& build_id,
                                         const std::vector<std::string>& debug_directories,
                                         bool keeps_unpacked) {
    // A path from a profile may name anything. If it is a pipe, opening it must not block.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return nullptr;
    struct stat status {};
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || !begins_as_elf(fd)) {
        ::close(fd);
        return nullptr;
    }
    return from_descriptor(fd, path, build_id, debug_directories,
                           keeps_unpacked && !build_id.empty());
}

std::unique_ptr<ElfImage> ElfImage::open_own_vdso(const std::string& build_id) {
    const auto address = ::getauxval(AT_SYSINFO_EHDR);
    if (!address) return nullptr;
    const auto* image = reinterpret_cast<const std::byte*>(address);
    const int fd = ::memfd_create("vdso", MFD_CLOEXEC);
    const auto size = size_of_image(image);
    if (fd < 0 || ::write(fd, image, size) != static_cast<ssize_t>(size)) {
        if (fd >= 0) ::close(fd);
        return nullptr;
    }
    return from_descriptor(fd, "[vdso]", build_id, {}, false);
}

std::unique_ptr<ElfImage> ElfImage::from_descriptor(int fd, const std::string& path,
                                                    const std::string& build_id,
                                                    const std::vector<std::string>& directories,
                                                    bool keeps_unpacked) {
    std::unique_ptr<ElfImage> image{new ElfImage};
    image->build_id_ = build_id;
    image->debug_directories_ = directories;
    image->keeps_unpacked_ = keeps_unpacked;
    image->file_ = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    for (const auto& directory : directories) image->debug_path_ += ":" + directory;
    image->debug_path_ = ":.debug" + image->debug_path_;
    image->debug_path_pointer_ = image->debug_path_.data();
    image->callbacks_.find_elf = dwfl_build_id_find_elf;
    image->callbacks_.find_debuginfo = find_debug_file;
    image->callbacks_.debuginfo_path = &image->debug_path_pointer_;
    image->session_ = dwfl_begin(&image->callbacks_);
    if (image->session_) {
        dwfl_report_begin(image->session_);
        // Loaded at zero: what libdwfl calls an address is then the link-time address.
        image->module_ = dwfl_report_elf(image->session_, path.c_str(), path.c_str(), fd, 0,
                                         /*add_p_vaddr=*/true);
        dwfl_report_end(image->session_, nullptr, nullptr);
    }
    if (!image->module_) {
        ::close(fd);
        return nullptr;
    }
    void** of_module = nullptr;
    dwfl_module_info(image->module_, &of_module, nullptr, nullptr, nullptr, nullptr, nullptr,
                     nullptr);
    *of_module = image.get();
    GElf_Addr bias = 0;
    image->elf_ = dwfl_module_getelf(image->module_, &bias);
    if (!image->elf_ || !is_x86_64(image->elf_) || build_id_of(image->elf_) != build_id)
        return nullptr;
    return image;
}

int ElfImage::find_debug_file(Dwfl_Module* module, void** of_module, const char* name,
                              GElf_Addr base, const char* file, const char* link,
                              GElf_Word checksum, char** found) {
    auto& image = *static_cast<ElfImage*>(*of_module);
    // First: what libdwfl finds itself, it opens itself.
    const int unpacked = image.keeps_unpacked_ ? open_unpacked(image.build_id_) : -1;
    image.is_unpacked_ = unpacked >= 0;
    return image.is_unpacked_ ? unpacked
                              : find_regular_debug_file(module, of_module, name, base, file, link,
                                                        checksum, found);
}

void ElfImage::keep_debug_file() const {
    if (!keeps_unpacked_ || is_unpacked_) return;
    for (const auto& directory : debug_directories_)
        if (keep_unpacked(directory, build_id_)) return;
}

ElfImage::~ElfImage() {
    if (session_) dwfl_end(session_);
    if (file_ >= 0) ::close(file_);
}

std::vector<SymbolCandidate> ElfImage::symbols() const {
    return symbols_in(true);
}
std::vector<SymbolCandidate> ElfImage::variables() const {
    return symbols_in(false);
}

std::vector<SymbolCandidate> ElfImage::symbols_in(bool code) const {
    // Names may share their bytes, so that a small file can have any amount of them.
    constexpr std::size_t most_bytes_of_names = std::size_t{1} << 30;
    std::size_t bytes_of_names = 0;
    std::vector<SymbolCandidate> found;
    const int count = dwfl_module_getsymtab(module_);
    for (int i = 1; i < count; ++i) {
        GElf_Sym symbol;
        GElf_Addr address = 0, bias = 0;
        GElf_Word index = 0;
        Elf* elf = nullptr;
        const char* name =
            dwfl_module_getsym_info(module_, i, &symbol, &address, &index, &elf, &bias);
        if (!name || !*name || index == SHN_UNDEF || index >= SHN_LORESERVE) continue;
        const int type = GELF_ST_TYPE(symbol.st_info);
        const bool is_global = GELF_ST_BIND(symbol.st_info) != STB_LOCAL;
        const bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
        const bool is_variable = type == STT_OBJECT && symbol.st_size != 0;
        if (code ? !is_function && !(type == STT_NOTYPE && is_global) : !is_variable) continue;
        GElf_Shdr section;
        if (!gelf_getshdr(elf_getscn(elf, index), &section)) continue;
        const auto section_end = section.sh_addr + section.sh_size + bias;
        if (code != bool(section.sh_flags & SHF_EXECINSTR) || address >= section_end) continue;
        const auto size = std::min<std::uint64_t>(symbol.st_size, section_end - address);
        found.push_back({name, address, size, section_end, is_function || is_variable, is_global});
        bytes_of_names += found.back().symbol.size();
        if (bytes_of_names > most_bytes_of_names) break;
    }
    return found;
}

bool ElfImage::has_debug_information() const {
    Dwarf_Addr bias = 0;
    return dwfl_module_getdwarf(module_, &bias) != nullptr;
}

std::vector<ElfSection> ElfImage::sections() const {
    std::vector<ElfSection> found;
    std::size_t names = 0;
    if (elf_getshdrstrndx(elf_, &names) != 0) return found;
    for (Elf_Scn* s = elf_nextscn(elf_, nullptr); s; s = elf_nextscn(elf_, s)) {
        GElf_Shdr header;
        if (!gelf_getshdr(s, &header)) continue;
        const char* name = elf_strptr(elf_, names, header.sh_name);
        found.push_back({name ? name : "", header, s});
    }
    return found;
}

std::vector<Relocation> ElfImage::relocations() const {
    std::vector<Relocation> found;
    for (const auto& section : sections()) {
        if (section.header.sh_type != SHT_RELA) continue;
        Elf_Data* data = elf_getdata(section.section, nullptr);
        Elf_Scn* symbols = elf_getscn(elf_, section.header.sh_link);
        GElf_Shdr symbols_header;
        Elf_Data* symbols_data = nullptr;
        if (symbols && gelf_getshdr(symbols, &symbols_header))
            symbols_data = elf_getdata(symbols, nullptr);
        GElf_Rela rela;
        for (int i = 0; data && gelf_getrela(data, i, &rela); ++i) {
            Relocation r{rela.r_offset, {}, static_cast<std::uint64_t>(rela.r_addend), {}};
            if (section.name == ".rela.plt") r.plt_index = static_cast<std::uint64_t>(i);
            const auto type = GELF_R_TYPE(rela.r_info);
            if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) {
                GElf_Sym symbol;
                const auto index = static_cast<int>(GELF_R_SYM(rela.r_info));
                if (!symbols_data || !gelf_getsym(symbols_data, index, &symbol)) continue;
                const char* name = elf_strptr(elf_, symbols_header.sh_link, symbol.st_name);
                if (!name || !*name) continue;
                r.symbol = name;
            } else if (type != R_X86_64_IRELATIVE) {
                continue;
            }
            found.push_back(std::move(r));
        }
    }
    return found;
}

std::vector<std::byte> ElfImage::bytes(std::uint64_t address, std::size_t size) const {
    std::size_t segments = 0;
    if (elf_getphdrnum(elf_, &segments) != 0) return {};
    for (std::size_t i = 0; i < segments; ++i) {
        GElf_Phdr segment;
        if (!gelf_getphdr(elf_, static_cast<int>(i), &segment) || segment.p_type != PT_LOAD)
            continue;
        if (address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz) continue;
        const auto skipped = address - segment.p_vaddr;
        const auto from = segment.p_offset + skipped;
        struct stat status {};
        if (::fstat(file_, &status) != 0 || from >= static_cast<std::uint64_t>(status.st_size))
            return {};
        const auto left = static_cast<std::uint64_t>(status.st_size) - from;
        std::vector<std::byte> out(
            std::min<std::uint64_t>({size, segment.p_filesz - skipped, left}));
        const auto got = ::pread(file_, out.data(), out.size(), static_cast<off_t>(from));
        out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
        return out;
    }
    return {};
}

}  // namespace shadowprof::report
