// Finds source lines and inlined functions in DWARF.
//
// libdw finds a compilation unit by .debug_aranges, which clang does not write, and scopes by
// walking the whole unit, which is not fast enough for thousands of locations. So this class keeps
// tables: for each unit in use one of the ranges of functions, and, once an address is in no unit
// that libdw finds, one of the ranges of all units.
#pragma once

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "report/model/profile.h"
#include "report/symbols/parameters.h"

namespace shadowprof::report {

struct SourceLine {
    std::string file;  // empty if unknown
    std::uint32_t line = 0;
    std::vector<InlinedFrame> inlined;  // innermost first
};

// One thread at a time.
class SourceLines {
  public:
    explicit SourceLines(Dwfl_Module* module);
    SourceLine find(std::uint64_t address);
    // Of the function that begins there, as far as they are known. `is_changed`: the compiler may
    // have changed what is passed to it.
    std::vector<PassedParameter> parameters_at(std::uint64_t address, bool is_changed);

  private:
    struct DieRange {
        std::uint64_t begin, end;
        Dwarf_Die die;
    };
    using DieRanges = std::vector<DieRange>;
    static void add_ranges(DieRanges& to, Dwarf_Die die);
    static void add_functions(DieRanges& to, Dwarf_Die parent, unsigned depth = 0);
    static void sort(DieRanges& ranges);
    std::optional<Dwarf_Die> unit_at(std::uint64_t address);
    Dwarf_Die* function_at(Dwarf_Die& unit, std::uint64_t address);
    static Dwarf_Die* find_in(DieRanges& ranges, std::uint64_t address);
    static std::vector<InlinedFrame> inlined_at(Dwarf_Die unit, Dwarf_Die function,
                                                std::uint64_t address);

    Dwfl_Module* module_;
    std::uint64_t bias_ = 0;
    Dwarf* dwarf_;  // nullptr: there is none
    std::optional<DieRanges> units_;
    std::unordered_map<std::uint64_t, DieRanges> functions_;  // by unit
};

}  // namespace shadowprof::report
