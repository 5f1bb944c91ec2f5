// Profiles one process: a session, and what makes a profile of what it saw. A process that executes
// one program after the other yields one for each.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "model/chapters.h"
#include "profile/common/state.h"
#include "profile/module/module_set.h"
#include "profile/registry.h"
#include "profile/rule/rule_set.h"
#include "report/symbols/place_names.h"
#include "report/symbols/symbols.h"
#include "sampling/family/family.h"
#include "sampling/session.h"

namespace shadowprof::cli {

// As it is in profiles.
model::Coverage coverage_of(const sampling::Coverage& seen);

class ProcessProfiling {
  public:
    // What is wanted of each process of a run.
    struct Wanted {
        profile::ProfileOptions profiles;
        const profile::RuleParameters& rules;
        profile::ModuleSet& modules;  // look at the first process only
        model::KeepOptions keep;
    };
    // `beside`: what looks at another process of the same family, if any.
    ProcessProfiling(const sampling::Options& sampling, const sampling::Target& target,
                     const Wanted& wanted, const ProcessProfiling* beside = nullptr);

    sampling::Session& session() { return session_; }
    // Throws UserError.
    void start();

    struct OfProgram {
        std::string program;
        sampling::Coverage coverage;
        model::Profile profile;  // without facts
    };
    struct Seen {
        sampling::Result result;
        std::vector<OfProgram> programs;  // the last one last
    };
    // What was seen so far of the program that is executed now; taken by a copy of this process,
    // which ends then. Returns why not, or nothing. For any thread.
    std::string snapshot(const std::function<void(const sampling::Result&, model::Profile)>& take);
    // Waits for the end. `is_alone`: there is nothing that this is to be merged with.
    Seen finish(bool is_alone);

  private:
    struct Program {
        std::string path;
        sampling::Coverage coverage;
        model::Chapters chapters;
    };
    Program& program(const std::string& path);
    void take(const profile::Hotlists& seen, const sampling::Chapter& chapter,
              const sampling::Coverage& coverage);

    profile::ProfileOptions profiles_;
    const model::KeepOptions keep_;
    sampling::Session session_;
    report::Symbols symbols_;
    report::SymbolFunctionMap functions_;
    report::SymbolPlaceNames place_names_;
    const profile::RuleSet rules_;
    const profile::RuleParameters parameters_of_modules_;
    const profile::RuleSet rules_of_modules_;
    const profile::StateCaptures of_values_;
    const profile::ChoiceOfAll chosen_{{&rules_, &rules_of_modules_, &of_values_}};
    std::vector<Program> programs_;
};

// One that another process has started, on a thread of its own.
class StartedProcess : public sampling::FamilyMember {
  public:
    // `take` is called on that thread.
    using Take = std::function<void(pid_t, ProcessProfiling::Seen)>;
    StartedProcess(const sampling::Options& sampling, pid_t pid,
                   const ProcessProfiling::Wanted& wanted, const ProcessProfiling& first,
                   Take take);
    ~StartedProcess() override;

    void stop(const std::string& why) override { profiling_.session().stop(why); }
    bool is_over() const override { return is_over_; }
    std::uint64_t samples() const override { return samples_; }
    Seconds price() const override { return price_; }
    std::string why_not() const override { return why_not_; }

  private:
    void run();

    pid_t pid_;
    ProcessProfiling profiling_;
    Take take_;
    std::atomic<bool> is_over_{false};
    std::atomic<std::uint64_t> samples_{0};
    // Written before is_over_.
    Seconds price_{0};
    std::string why_not_;
    std::thread worker_;
};

}  // namespace shadowprof::cli
