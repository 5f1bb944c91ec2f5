// Variables of modules, by the addresses that were accessed. A location is of code or of data; how
// variables are told apart is a matter of higher floors, as it is with functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "profile/common/profiler.h"
#include "trace/block.h"

namespace shadowprof::profile {

class Variables {
  public:
    explicit Variables(FunctionMap& names) : names_(names) {}

    // Where modules are is known by the blocks of their code.
    void learn(const trace::Block& block);
    // Nothing where no variable is known.
    std::optional<Location> at(std::uint64_t address);

  private:
    bool is_known(const Location& place);

    FunctionMap& names_;
    std::map<std::uint64_t, trace::ModuleId> modules_;  // by where their offset 0 is
    std::unordered_map<std::uint64_t, std::optional<Location>> known_;
};

}  // namespace shadowprof::profile
