// What profiles say about the runs they come from, as of one: who may be merged with whom, and what
// is then told of all. See merge.h for why everything here is a sum, a set, a least or a greatest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/profile.h"

namespace shadowprof::model {

// Adds up what was seen.
void add_coverage(Coverage& into, const Coverage& more);

class FactsSum {
  public:
    // Throws UserError(incomparable) if the profile cannot be merged with those before it.
    void add_facts(const NamedProfile& profile);
    RunFacts take();

  private:
    void refuse_other_kind(const NamedProfile& profile);
    void refuse_other_program(const NamedProfile& profile);
    void add_targets(const std::vector<Target>& targets);
    void add_run(const Run& run);
    void add_cost(const Cost& cost);

    std::string first_;  // its file
    std::string mode_;
    std::set<std::string> types_;
    std::set<std::string> lists_;
    std::set<std::string> programs_;
    std::map<std::string, std::pair<std::string, std::string>> builds_;  // by path: build, file

    std::set<std::string> tools_;
    std::set<Host> hosts_;
    std::map<std::pair<std::vector<std::string>, bool>, Target> targets_;
    std::vector<std::uint64_t> seeds_;
    std::vector<ControlCommand> control_;
    std::optional<std::map<std::string, std::string>> options_;
    std::optional<Budget> budget_;
    bool is_whole_ = true;
    std::map<std::string, std::uint64_t> stood_in_;  // nanoseconds
    std::optional<std::string> started_, interrupted_;
    std::set<std::string> warnings_, failures_;
    std::uint64_t duration_ = 0, stop_time_ = 0, extra_cpu_ = 0;  // nanoseconds: sums of fractions
                                                                  // would depend on their order
    Cost cost_;
    std::optional<Coverage> coverage_;
};

}  // namespace shadowprof::model
