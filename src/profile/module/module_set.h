// The customisation modules of a run, as rules: which instructions they watch, and what must be
// captured for them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "addon/worker.h"
#include "profile/rule/rule_set.h"

namespace shadowprof::profile {

// What a module watches by one of its patterns.
struct ModuleWatch {
    std::uint32_t module = 0;
    std::uint8_t number = 0;
    std::vector<RuleOperand> words;  // in the order in which they were asked for
};

// The modules' processes. To be made while there is only one thread.
class ModuleSet {
  public:
    // Throws UserError, also where two are called the same.
    void load(const std::string& file, const std::string& arguments);
    bool empty() const { return workers_.empty(); }

    // Of the same index as rules are watches.
    std::vector<Rule> rules() const { return rules_; }
    const std::vector<ModuleWatch>& watches() const { return watches_; }

    std::size_t size() const { return workers_.size(); }
    addon::Worker& worker(std::size_t module) { return *workers_[module]; }
    // The module and its arguments, as profiles have it.
    std::string text_of(std::size_t module) const;
    void target_is(pid_t pid);

    // How modules ended that did so before their time.
    std::vector<std::string> warnings() const;

  private:
    std::vector<std::unique_ptr<addon::Worker>> workers_;
    std::vector<std::string> arguments_;
    std::vector<Rule> rules_;
    std::vector<ModuleWatch> watches_;
};

}  // namespace shadowprof::profile
