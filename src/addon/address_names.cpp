#include "addon/address_names.h"

#include <cxxabi.h>
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>

#include "base/input_file.h"

namespace shadowprof::addon {

namespace {

// A structure of the file; nothing beyond its end.
template <class T>
std::optional<T> at(const std::string& bytes, std::uint64_t offset) {
    T value;
    if (offset > bytes.size() || bytes.size() - offset < sizeof value) return {};
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

std::string text_at(const std::string& bytes, std::uint64_t offset) {
    if (offset >= bytes.size()) return {};
    const auto end = std::min(bytes.find('\0', offset), bytes.size());
    return bytes.substr(offset, end - offset);
}

// Empty if it is none: a program can map a device that has no end.
std::string bytes_of(const std::string& image) {
    constexpr std::size_t most = std::size_t{4} << 30;
    try {
        return read_whole_file(image, most, Source::file);
    } catch (const UserError&) {
        return {};
    }
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
    std::ifstream file("/proc/" + std::to_string(pid_) + "/maps");
    std::vector<Mapping> mappings;
    std::map<std::string, std::uint64_t> first_of;
    for (std::string line; std::getline(file, line);) {
        Mapping mapping;
        int path_at = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %*s %n", &mapping.begin, &mapping.end,
                        &path_at) < 2)
            continue;
        if (path_at > 0) mapping.path = line.substr(static_cast<std::size_t>(path_at));
        if (!mapping.path.empty()) first_of.try_emplace(mapping.path, mapping.begin);
        mappings.push_back(std::move(mapping));
    }
    if (mappings.empty()) return;
    mappings_ = std::move(mappings);
    first_of_ = std::move(first_of);
}

const AddressNames::Image& AddressNames::image_of(const std::string& path) {
    auto& image = images_[path];
    if (std::exchange(image.is_read, true)) return image;
    const auto bytes = bytes_of(path);
    const auto head = at<Elf64_Ehdr>(bytes, 0);
    if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0) return image;
    image.first = ~std::uint64_t{0};
    for (std::size_t n = 0; n < head->e_phnum; ++n) {
        const auto segment = at<Elf64_Phdr>(bytes, head->e_phoff + n * sizeof(Elf64_Phdr));
        if (!segment || segment->p_type != PT_LOAD) continue;
        image.first = std::min<std::uint64_t>(image.first, segment->p_vaddr & ~std::uint64_t{4095});
        image.end = std::max<std::uint64_t>(image.end, segment->p_vaddr + segment->p_memsz);
    }
    for (std::size_t n = 0; n < head->e_shnum; ++n) {
        const auto section = at<Elf64_Shdr>(bytes, head->e_shoff + n * sizeof(Elf64_Shdr));
        if (!section || (section->sh_type != SHT_SYMTAB && section->sh_type != SHT_DYNSYM))
            continue;
        const auto names =
            at<Elf64_Shdr>(bytes, head->e_shoff + section->sh_link * sizeof(Elf64_Shdr));
        if (!names) continue;
        for (std::uint64_t s = 0; s + sizeof(Elf64_Sym) <= section->sh_size;
             s += sizeof(Elf64_Sym)) {
            const auto symbol = at<Elf64_Sym>(bytes, section->sh_offset + s);
            if (!symbol) break;
            if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_size == 0 ||
                symbol->st_shndx == SHN_UNDEF)
                continue;
            image.variables.push_back({symbol->st_value, symbol->st_value + symbol->st_size,
                                       text_at(bytes, names->sh_offset + symbol->st_name)});
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
    const auto found = std::find_if(mappings_.begin(), mappings_.end(), [&](const Mapping& m) {
        return m.begin <= address && address < m.end;
    });
    if (found == mappings_.end()) return {};
    // Zeroed data of a file follows its mappings and has no name.
    auto named = found;
    while (named != mappings_.begin() && named->path.empty() &&
           std::prev(named)->end == named->begin)
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
        return fmt::format("{}+{:#x}", found->path, address - found->begin);
    return fmt::format("{:#x}", address);
}

}  // namespace shadowprof::addon
