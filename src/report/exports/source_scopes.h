// Source positions as compilers match profiles: not lines of files, which every edit above moves,
// but lines counted from where the function is declared, with the discriminator that tells blocks
// on one line apart; and for code that was expanded in place, the same for each call that it came
// through.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "report/model/profile.h"
#include "report/symbols/symbols.h"

namespace shadowprof::report {

struct SourceOffset {
    std::uint32_t line = 0;
    std::uint32_t discriminator = 0;
    auto operator<=>(const SourceOffset&) const = default;
};

// Outermost first: in each function, the offset of the call to the next, or of the code itself.
struct ScopeFrame {
    std::string function;  // as the linker names it
    SourceOffset offset;
};

class SourceScopes {
  public:
    // Throws UserError if the module's file is not there or has no debug information.
    SourceScopes(const Module& module, const SymbolOptions& options);
    ~SourceScopes();

    // Calls `use` with each piece of [begin, last] that is one source position.
    void each(std::uint64_t begin, std::uint64_t last,
              const std::function<void(const std::vector<ScopeFrame>&)>& use);

  private:
    struct Tables;
    std::unique_ptr<Tables> tables_;
};

}  // namespace shadowprof::report
