// Finds out for rules in which function, file and module places are.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profile/rule/rule_set.h"
#include "report/symbols/symbols.h"
#include "trace/location.h"

namespace shadowprof::report {

// Functions are found by a whole name, with or without parameters, as reports have it; the stub for
// one in another module counts as the function. Files and modules by their path or its last part.
class SymbolPlaceNames : public profile::PlaceNames {
  public:
    SymbolPlaceNames(Symbols& symbols, const trace::ModuleTable& modules)
        : symbols_(symbols), modules_(modules) {}
    bool fits(profile::NameOf what, const std::string& glob, const trace::Location& place) override;
    profile::PlaceName name_of(const trace::Location& place) override;

  private:
    // Of one module: whether it fits, or the functions that do, in order.
    struct Known {
        bool all = false, is_looked_up = false;
        std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
        std::unordered_map<std::uint64_t, bool> by_offset;  // files, and code made at run time
    };
    Known& known(profile::NameOf what, const std::string& glob, const trace::Location& place,
                 const trace::Module& module);

    Symbols& symbols_;
    const trace::ModuleTable& modules_;
    std::mutex mutex_;
    std::unordered_map<std::string, Known> known_;  // by kind, module and glob
};

}  // namespace shadowprof::report
