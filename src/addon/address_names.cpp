#include "addon/address_names.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>

namespace shadowprof::addon {

namespace {

// What a process has mapped may be anything by now: only regular files are read, and of these what
// is needed.
class File {
  public:
    explicit File(const std::string& path)
        : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
        struct stat status {};
        if (fd_ >= 0 && (::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode))) {
            ::close(fd_);
            fd_ = -1;
        }
    }
    ~File() {
        if (fd_ >= 0) ::close(fd_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    // Those that it has of as many.
    template <class T>
    std::vector<T> read(std::uint64_t offset, std::uint64_t count) const {
        constexpr std::uint64_t most_bytes = 64u << 20;
        std::vector<T> all(std::min<std::uint64_t>(count, most_bytes / sizeof(T)));
        const auto got =
            ::pread(fd_, all.data(), all.size() * sizeof(T), static_cast<off_t>(offset));
        all.resize(got < 0 ? 0 : static_cast<std::size_t>(got) / sizeof(T));
        return all;
    }

  private:
    int fd_;
};

std::string text_in(const std::vector<char>& names, std::uint64_t offset) {
    constexpr std::size_t longest = 1024;
    if (offset >= names.size()) return {};
    return {names.data() + offset,
            ::strnlen(names.data() + offset, std::min(names.size() - offset, longest))};
}

std::string readable(const std::string& name) {
    int failed = 0;
    const std::unique_ptr<char, decltype(&std::free)> text{
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &failed), &std::free};
    return failed == 0 && text ? text.get() : name;
}

std::string file_name(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

}  // namespace

void AddressNames::target_is(pid_t pid) {
    pid_ = pid;
    read_maps();
}

void AddressNames::has_image(const std::string& path) {
    if (first_of_.count(path) == 0) read_maps();
}

// What was there once keeps its name when the process is gone.
void AddressNames::read_maps() {
    const auto maps = proc::Maps::without_modules(pid_);
    if (!maps || maps->mappings().empty()) return;
    mappings_ = maps->mappings();
    first_of_.clear();
    for (auto& mapping : mappings_) {
        if (mapping.deleted) mapping.path += " (deleted)";  // another file may have that name
        if (!mapping.path.empty()) first_of_.try_emplace(mapping.path, mapping.range.begin.value);
    }
}

const AddressNames::Image& AddressNames::image_of(const std::string& path) {
    auto& image = images_[path];
    if (std::exchange(image.is_read, true)) return image;
    const File file{path};
    const auto heads = file.read<Elf64_Ehdr>(0, 1);
    if (heads.empty() || std::memcmp(heads[0].e_ident, ELFMAG, SELFMAG) != 0) return image;
    image.first = ~std::uint64_t{0};
    for (const auto& segment : file.read<Elf64_Phdr>(heads[0].e_phoff, heads[0].e_phnum)) {
        if (segment.p_type != PT_LOAD) continue;
        image.first = std::min<std::uint64_t>(image.first, segment.p_vaddr & ~std::uint64_t{4095});
        image.end = std::max<std::uint64_t>(image.end, segment.p_vaddr + segment.p_memsz);
    }
    const auto sections = file.read<Elf64_Shdr>(heads[0].e_shoff, heads[0].e_shnum);
    for (const auto type : {SHT_SYMTAB, SHT_DYNSYM}) {
        const auto section = std::ranges::find(sections, type, &Elf64_Shdr::sh_type);
        if (section == sections.end() || section->sh_link >= sections.size()) continue;
        const auto& text = sections[section->sh_link];
        const auto names = file.read<char>(text.sh_offset, text.sh_size);
        for (const auto& symbol :
             file.read<Elf64_Sym>(section->sh_offset, section->sh_size / sizeof(Elf64_Sym))) {
            if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_size == 0 ||
                symbol.st_shndx == SHN_UNDEF)
                continue;
            image.variables.push_back({symbol.st_value, symbol.st_value + symbol.st_size,
                                       text_in(names, symbol.st_name)});
        }
    }
    std::sort(image.variables.begin(), image.variables.end(),
              [](const Variable& a, const Variable& b) {
                  return std::tie(a.begin, a.name) < std::tie(b.begin, b.name);
              });
    return image;
}

std::string AddressNames::name(std::uint64_t address) {
    auto name = look_up(address);
    if (name.empty()) {
        read_maps();
        name = look_up(address);
    }
    return name.empty() ? fmt::format("{:#x}", address) : name;
}

std::string AddressNames::look_up(std::uint64_t address) {
    const auto found = std::find_if(mappings_.begin(), mappings_.end(),
                                    [&](const auto& m) { return m.range.contains({address}); });
    if (found == mappings_.end()) return {};
    // Zeroed data of a file follows its mappings and has no name.
    auto named = found;
    while (named != mappings_.begin() && named->path.empty() &&
           std::prev(named)->range.end == named->range.begin)
        --named;
    if (named->path.starts_with('/')) {
        const auto& image = image_of(named->path);
        const auto linked = address - first_of_[named->path] + image.first;
        if (linked < image.end) {
            const auto after =
                std::upper_bound(image.variables.begin(), image.variables.end(), linked,
                                 [](std::uint64_t a, const Variable& v) { return a < v.begin; });
            if (after != image.variables.begin() && linked < std::prev(after)->end) {
                const auto& variable = *std::prev(after);
                const auto text = readable(variable.name);
                return linked == variable.begin
                           ? text
                           : fmt::format("{}+{:#x}", text, linked - variable.begin);
            }
            return fmt::format("{}+{:#x}", file_name(named->path), linked);
        }
    }
    if (found->path.starts_with('['))
        return fmt::format("{}+{:#x}", found->path, address - found->range.begin.value);
    return fmt::format("{:#x}", address);
}

}  // namespace shadowprof::addon
