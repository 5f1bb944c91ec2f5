// The functions of a binary by the mangled names in its symbol table. Names that are local to one
// source file are made unique in the way BOLT does it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "report/model/profile.h"
#include "report/symbols/symbol_file.h"
#include "report/symbols/symbols.h"

namespace shadowprof::report {

struct BinaryFunction {
    std::string symbol;
    std::string bolt_name;  // a local symbol: "name/file.c/1", the number distinguishes namesakes
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

class BinaryNames {
  public:
    // Throws UserError if the file of the module is not there, is another build, or has no symbols.
    BinaryNames(const Module& module, const SymbolOptions& options);
    const BinaryFunction* at(std::uint64_t address) const;
    std::vector<std::byte> code_of(const BinaryFunction& function) const;

  private:
    std::unique_ptr<ElfImage> image_;
    std::vector<BinaryFunction> functions_;  // by address, one at each
};

}  // namespace shadowprof::report
