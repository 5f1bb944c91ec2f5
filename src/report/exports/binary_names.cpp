#include "report/exports/binary_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "model/utf8.h"

namespace shadowprof::report {

namespace {

struct Symbol {
    std::string name, file;
    std::uint64_t begin, end;
    bool is_local;
};

// In a symbol table, local symbols follow the symbol of their source file.
std::vector<Symbol> function_symbols(const ElfImage& image) {
    std::vector<Symbol> symbols;
    for (const auto& section : image.sections()) {
        if (section.header.sh_type != SHT_SYMTAB) continue;
        Elf_Data* data = elf_getdata(section.section, nullptr);
        Elf* elf = nullptr;
        GElf_Addr bias = 0;
        elf = dwfl_module_getelf(image.dwfl_module(), &bias);
        std::string file;
        GElf_Sym s;
        for (int i = 0; data && gelf_getsym(data, i, &s); ++i) {
            const char* name = elf_strptr(elf, section.header.sh_link, s.st_name);
            if (!name) continue;
            const auto type = GELF_ST_TYPE(s.st_info);
            const bool is_local = GELF_ST_BIND(s.st_info) == STB_LOCAL;
            if (type == STT_FILE) file = name;
            if (type != STT_FUNC || s.st_size == 0 || s.st_shndx == SHN_UNDEF) continue;
            symbols.push_back({name, file, s.st_value, s.st_value + s.st_size, is_local});
        }
    }
    std::stable_sort(symbols.begin(), symbols.end(),
                     [](const Symbol& a, const Symbol& b) { return a.begin < b.begin; });
    return symbols;
}

}  // namespace

BinaryNames::BinaryNames(const Module& module, const SymbolOptions& options)
    : image_(
          ElfImage::open(options.root + module.path, module.build_id, options.debug_directories)) {
    if (!image_)
        throw UserError(fmt::format("{} is not there, or not the build that was profiled",
                                    printable(module.path)));
    std::map<std::string, unsigned> namesakes;
    for (auto& s : function_symbols(*image_)) {
        auto bolt_name = s.name;
        if (s.is_local) {
            bolt_name += "/" + (s.file.empty() ? std::string() : s.file + "/");
            bolt_name += std::to_string(++namesakes[bolt_name]);
        }
        // If a function has several names, any will do; a global one is preferred.
        if (!functions_.empty() && functions_.back().begin == s.begin) {
            if (s.is_local) continue;
            functions_.pop_back();
        }
        functions_.push_back({std::move(s.name), std::move(bolt_name), s.begin, s.end});
    }
    if (functions_.empty())
        throw UserError(
            fmt::format("{} has no symbol table: it was stripped", printable(module.path)));
}

const BinaryFunction* BinaryNames::at(std::uint64_t address) const {
    const auto after =
        std::upper_bound(functions_.begin(), functions_.end(), address,
                         [](std::uint64_t a, const BinaryFunction& f) { return a < f.begin; });
    if (after == functions_.begin() || std::prev(after)->end <= address) return nullptr;
    return &*std::prev(after);
}

std::vector<std::byte> BinaryNames::code_of(const BinaryFunction& function) const {
    return image_->bytes(function.begin, function.end - function.begin);
}

}  // namespace shadowprof::report
