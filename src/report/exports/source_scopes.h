// Source positions in the form by which compilers match profiles. Lines are counted from the
// declaration of the function, because every edit above moves lines of the file. A discriminator
// distinguishes blocks on one line. Code that was expanded in place has such a position for each
// call that it came through.
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

// Outermost first. Each entry has the offset of the call to the next; the last, of the code itself.
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
