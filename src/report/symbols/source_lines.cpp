#include "report/symbols/source_lines.h"

#include <dwarf.h>

#include <algorithm>

#include "report/symbols/demangle.h"
#include "report/symbols/dies.h"

namespace shadowprof::report {

namespace {

std::string function_name(Dwarf_Die& die) {
    Dwarf_Attribute attribute;
    for (const unsigned which : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
        if (const char* linkage = dwarf_formstring(dwarf_attr_integrate(&die, which, &attribute)))
            return demangle(linkage);
    const char* name = dwarf_diename(&die);
    return name ? name : "";
}

std::string file_of_unit(Dwarf_Die& unit, std::size_t index) {
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (dwarf_getsrcfiles(&unit, &files, &count) != 0 || index >= count) return {};
    const char* name = dwarf_filesrc(files, index, nullptr, nullptr);
    return name ? name : "";
}

}  // namespace

SourceLines::SourceLines(Dwfl_Module* module)
    : module_(module), dwarf_(dwfl_module_getdwarf(module, &bias_)) {}

// To look at all units reads most of what there is: for the C library 9 ms and 4 MB.
std::optional<Dwarf_Die> SourceLines::unit_at(std::uint64_t address) {
    if (!dwarf_) return {};
    Dwarf_Die found;
    if (dwarf_addrdie(dwarf_, address, &found)) return found;
    if (!units_) {
        units_.emplace();
        Dwarf_Addr bias = 0;
        Dwarf_Die* unit = nullptr;
        while ((unit = dwfl_module_nextcu(module_, unit, &bias))) add_ranges(*units_, *unit);
        sort(*units_);
    }
    const auto* const unit = find_in(*units_, address);
    return unit ? std::optional{*unit} : std::nullopt;
}

void SourceLines::add_ranges(DieRanges& to, Dwarf_Die die) {
    Dwarf_Addr base = 0, begin = 0, end = 0;
    for (std::ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;)
        if (begin < end && to.size() < most_ranges) to.push_back({begin, end, die});
}

void SourceLines::add_functions(DieRanges& to, Dwarf_Die parent, unsigned depth) {
    if (depth == deepest_entry) return;
    each_child(parent, [&](Dwarf_Die child) {
        const int tag = dwarf_tag(&child);
        if (tag == DW_TAG_subprogram)
            add_ranges(to, child);
        else if (tag == DW_TAG_namespace || tag == DW_TAG_module)
            add_functions(to, child, depth + 1);
        return true;
    });
}

void SourceLines::sort(DieRanges& ranges) {
    std::stable_sort(ranges.begin(), ranges.end(),
                     [](const auto& a, const auto& b) { return a.begin < b.begin; });
}

Dwarf_Die* SourceLines::find_in(DieRanges& ranges, std::uint64_t address) {
    const auto after =
        std::upper_bound(ranges.begin(), ranges.end(), address,
                         [](std::uint64_t a, const auto& range) { return a < range.begin; });
    if (after == ranges.begin() || std::prev(after)->end <= address) return nullptr;
    return &std::prev(after)->die;
}

std::vector<InlinedFrame> SourceLines::inlined_at(Dwarf_Die unit, Dwarf_Die function,
                                                  std::uint64_t address) {
    std::vector<InlinedFrame> frames;  // outermost first, while we descend
    Dwarf_Die scope = function;
    bool deeper = true;
    for (unsigned depth = 0; deeper && depth < deepest_entry; ++depth) {
        deeper = false;
        each_child(scope, [&](Dwarf_Die child) {
            const int tag = dwarf_tag(&child);
            const bool is_inlined = tag == DW_TAG_inlined_subroutine;
            const bool is_scope = is_inlined || tag == DW_TAG_lexical_block ||
                                  tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
            if (!is_scope || dwarf_haspc(&child, address) <= 0) return true;
            if (is_inlined)
                frames.push_back({function_name(child),
                                  file_of_unit(unit, number(child, DW_AT_call_file)),
                                  static_cast<std::uint32_t>(number(child, DW_AT_call_line))});
            scope = child;
            deeper = true;
            return false;
        });
    }
    std::reverse(frames.begin(), frames.end());
    return frames;
}

SourceLine SourceLines::find(std::uint64_t address) {
    address -= bias_;
    auto unit = unit_at(address);
    if (!unit) return {};
    SourceLine found;
    if (Dwarf_Line* line = dwarf_getsrc_die(&*unit, address)) {
        int number = 0;
        const char* file = dwarf_linesrc(line, nullptr, nullptr);
        // Line 0 marks code that belongs to no line.
        if (file && dwarf_lineno(line, &number) == 0 && number > 0) {
            found.file = file;
            found.line = static_cast<std::uint32_t>(number);
        }
    }
    if (const Dwarf_Die* function = function_at(*unit, address))
        found.inlined = inlined_at(*unit, *function, address);
    return found;
}

Dwarf_Die* SourceLines::function_at(Dwarf_Die& unit, std::uint64_t address) {
    const auto [functions, is_new] = functions_.try_emplace(dwarf_dieoffset(&unit));
    if (is_new) {
        add_functions(functions->second, unit);
        sort(functions->second);
    }
    return find_in(functions->second, address);
}

std::vector<PassedParameter> SourceLines::parameters_at(std::uint64_t address, bool is_changed) {
    address -= bias_;
    auto unit = unit_at(address);
    Dwarf_Die* const function = unit ? function_at(*unit, address) : nullptr;
    // GCC gives no entry to functions that are in two parts, the rare one elsewhere.
    Dwarf_Addr base = 0, entry = 0, end = 0;
    if (!function || dwarf_ranges(function, 0, &base, &entry, &end) <= 0 || entry != address)
        return {};
    return parameters_of(*unit, *function, entry, is_changed);
}

}  // namespace shadowprof::report
