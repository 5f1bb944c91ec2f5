#include "report/exports/source_scopes.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "model/utf8.h"
#include "report/symbols/dies.h"
#include "report/symbols/symbol_file.h"

namespace shadowprof::report {

namespace {

constexpr unsigned discriminator_attribute = 0x2136;  // DW_AT_GNU_discriminator

std::uint32_t number_of(Dwarf_Die& die, unsigned which) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    const auto found = dwarf_formudata(dwarf_attr_integrate(&die, which, &attribute), &value);
    return found == 0 ? static_cast<std::uint32_t>(value) : 0;
}

std::string linkage_name(Dwarf_Die& die) {
    Dwarf_Attribute attribute;
    for (const unsigned which : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name})
        if (const char* name = dwarf_formstring(dwarf_attr_integrate(&die, which, &attribute)))
            return name;
    return {};
}

// LLVM keeps how often code was duplicated in the same number, behind the part that tells blocks
// apart (llvm/IR/DebugInfoMetadata.h): five or twelve bits, after a bit that says whether it is
// there.
std::uint32_t base_discriminator(std::uint32_t d, bool is_clangs) {
    if (!is_clangs) return d;
    if (d & 1) return 0;
    d >>= 1;
    return d & 0x40 ? (d >> 1 & 0xfe0) | (d & 0x1f) : d & 0x3f;
}

// Compilers count lines modulo 2^16.
std::uint32_t line_offset(std::uint32_t line, std::uint32_t declared) {
    return (line - declared) & 0xffff;
}

}  // namespace

struct SourceScopes::Tables {
    struct Row {
        std::uint64_t begin, end;
        std::uint32_t line, discriminator;
    };

    struct Scope {
        std::uint64_t begin, end;
        Dwarf_Die die;
        bool is_clangs;
    };

    std::unique_ptr<ElfImage> image;
    std::vector<Row> rows;
    std::vector<Scope> functions;

    void add_unit(Dwarf_Die unit);
    void add_rows(Dwarf_Die unit);
    void add_functions(Dwarf_Die parent, bool is_clangs, unsigned depth = 0);
    const Scope* function_at(std::uint64_t address) const;
    std::vector<ScopeFrame> frames_at(std::uint64_t address, const Row& row) const;
};

void SourceScopes::Tables::add_unit(Dwarf_Die unit) {
    Dwarf_Attribute attribute;
    const char* producer = dwarf_formstring(dwarf_attr(&unit, DW_AT_producer, &attribute));
    add_rows(unit);
    add_functions(unit,
                  producer && std::string_view(producer).find("clang") != std::string_view::npos);
}

void SourceScopes::Tables::add_rows(Dwarf_Die unit) {
    Dwarf_Lines* lines = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrclines(&unit, &lines, &count) != 0) return;
    for (std::size_t i = 0; i + 1 < count; ++i) {
        Dwarf_Line* here = dwarf_onesrcline(lines, i);
        Dwarf_Addr begin = 0, end = 0;
        int line = 0;
        unsigned discriminator = 0;
        bool is_end = false;
        if (dwarf_lineendsequence(here, &is_end) != 0 || is_end) continue;
        dwarf_lineaddr(here, &begin);
        dwarf_lineaddr(dwarf_onesrcline(lines, i + 1), &end);
        dwarf_lineno(here, &line);
        dwarf_linediscriminator(here, &discriminator);
        if (begin < end && line > 0)
            rows.push_back({begin, end, static_cast<std::uint32_t>(line), discriminator});
    }
}

void SourceScopes::Tables::add_functions(Dwarf_Die parent, bool is_clangs, unsigned depth) {
    Dwarf_Die child;
    if (depth == deepest_entry || dwarf_child(&parent, &child) != 0) return;
    do {
        const int tag = dwarf_tag(&child);
        if (tag == DW_TAG_namespace || tag == DW_TAG_module)
            add_functions(child, is_clangs, depth + 1);
        if (tag != DW_TAG_subprogram) continue;
        Dwarf_Addr base = 0, begin = 0, end = 0;
        for (std::ptrdiff_t at = 0; (at = dwarf_ranges(&child, at, &base, &begin, &end)) > 0;)
            if (begin < end && functions.size() < most_ranges)
                functions.push_back({begin, end, child, is_clangs});
    } while (dwarf_siblingof(&child, &child) == 0);
}

const SourceScopes::Tables::Scope* SourceScopes::Tables::function_at(std::uint64_t address) const {
    const auto after = std::upper_bound(functions.begin(), functions.end(), address,
                                        [](auto a, const Scope& s) { return a < s.begin; });
    if (after == functions.begin() || std::prev(after)->end <= address) return nullptr;
    return &*std::prev(after);
}

std::vector<ScopeFrame> SourceScopes::Tables::frames_at(std::uint64_t address,
                                                        const Row& row) const {
    const auto* function = function_at(address);
    if (!function) return {};
    std::vector<Dwarf_Die> scopes{function->die};
    Dwarf_Die scope = function->die;
    bool deeper = true;
    for (unsigned depth = 0; deeper && depth < deepest_entry; ++depth) {
        deeper = false;
        Dwarf_Die child;
        if (dwarf_child(&scope, &child) != 0) break;
        do {
            const int tag = dwarf_tag(&child);
            const bool is_inlined = tag == DW_TAG_inlined_subroutine;
            if (!is_inlined && tag != DW_TAG_lexical_block) continue;
            if (dwarf_haspc(&child, address) <= 0) continue;
            if (is_inlined) scopes.push_back(child);
            scope = child;
            deeper = true;
            break;
        } while (dwarf_siblingof(&child, &child) == 0);
    }
    std::vector<ScopeFrame> frames;
    for (std::size_t i = 0; i < scopes.size(); ++i) {
        const auto declared = number_of(scopes[i], DW_AT_decl_line);
        const bool is_innermost = i + 1 == scopes.size();
        const auto line = is_innermost ? row.line : number_of(scopes[i + 1], DW_AT_call_line);
        const auto discriminator =
            is_innermost ? row.discriminator : number_of(scopes[i + 1], discriminator_attribute);
        frames.push_back({linkage_name(scopes[i]),
                          {line_offset(line, declared),
                           base_discriminator(discriminator, function->is_clangs)}});
        if (frames.back().function.empty() || declared == 0) return {};
    }
    return frames;
}

SourceScopes::SourceScopes(const Module& module, const SymbolOptions& options)
    : tables_(std::make_unique<Tables>()) {
    tables_->image =
        ElfImage::open(options.root + module.path, module.build_id, options.debug_directories);
    if (!tables_->image)
        throw UserError(fmt::format("{} is not there, or not the build that was profiled",
                                    printable(module.path)));
    Dwarf_Addr bias = 0;
    Dwarf_Die* unit = nullptr;
    while ((unit = dwfl_module_nextcu(tables_->image->dwfl_module(), unit, &bias)))
        tables_->add_unit(*unit);
    if (tables_->functions.empty())
        throw UserError(
            fmt::format("{} has no debug information: compile it with -g", printable(module.path)));
    const auto by_address = [](const auto& a, const auto& b) { return a.begin < b.begin; };
    std::stable_sort(tables_->rows.begin(), tables_->rows.end(), by_address);
    std::stable_sort(tables_->functions.begin(), tables_->functions.end(), by_address);
}

SourceScopes::~SourceScopes() = default;

void SourceScopes::each(std::uint64_t begin, std::uint64_t last,
                        const std::function<void(const std::vector<ScopeFrame>&)>& use) {
    auto row = std::upper_bound(tables_->rows.begin(), tables_->rows.end(), begin,
                                [](auto a, const auto& each) { return a < each.begin; });
    if (row != tables_->rows.begin()) --row;
    for (; row != tables_->rows.end() && row->begin <= last; ++row) {
        if (row->end <= begin) continue;
        const auto frames = tables_->frames_at(std::max(begin, row->begin), *row);
        if (!frames.empty()) use(frames);
    }
}

}  // namespace shadowprof::report
