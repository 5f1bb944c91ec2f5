// Finds the function that an address belongs to. A symbol table alone does not say: names share
// addresses, sizes are missing, labels lie inside functions, functions inside functions, and parts
// that GCC moved out of the way (".cold") have names of their own. This table decides once, and is
// then a sorted list of ranges that do not overlap.
//
// It has layers, the most reliable first; a later layer only fills gaps:
//   1. function symbols with a size: where they nest, the innermost wins;
//   2. function symbols and global labels without one: until the next function or the end of the
//      section (assembler code);
//   3. what the caller adds: PLT stubs, then ranges known from unwind tables, which have no names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shadowprof::report {

struct Function {
    std::string symbol;  // mangled; empty if it has none
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

struct SymbolCandidate {
    std::string symbol;
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    std::uint64_t section_end = 0;
    bool is_function = false;
    bool is_global = false;
};

class FunctionTable {
  public:
    explicit FunctionTable(std::vector<SymbolCandidate> symbols);

    // Adds functions, in any order, where nothing is known yet.
    void fill_gaps(std::vector<Function> functions);

    // nullptr if unknown. For a cold part, the function that it was split from.
    const Function* find(std::uint64_t address) const;
    const std::vector<Function>& functions() const { return functions_; }

  private:
    struct Range {
        std::uint64_t begin, end;
        std::uint32_t function;
    };
    void add_sized(std::vector<SymbolCandidate> sized);
    void add_unsized(std::vector<SymbolCandidate> unsized);
    void join_cold_parts();
    std::uint64_t next_range_after(std::uint64_t address) const;
    const Range* range_at(std::uint64_t address) const;

    std::vector<Function> functions_;
    std::vector<Range> ranges_;  // sorted, disjoint
};

}  // namespace shadowprof::report
