// One profile of several processes.
#pragma once

#include <sys/types.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cli/process_profiling.h"
#include "model/merge.h"

namespace shadowprof::cli {

class FamilyProfile {
  public:
    explicit FamilyProfile(const model::KeepOptions& keep) : keep_(keep) {}

    // What was seen of a process; from any thread.
    void add(pid_t pid, std::vector<ProcessProfiling::OfProgram> seen,
             const sampling::Result& result);
    // All of it, without facts but the processes; `result` of the first process becomes that of
    // all.
    model::Profile take(const sampling::Family::Told& told, sampling::Result& result);

  private:
    const model::KeepOptions keep_;
    std::mutex mutex_;
    model::Merger merger_{model::Merger::From::one_run};
    sampling::Cost cost_;
    sampling::Coverage coverage_;
    std::map<std::string, double> stood_in_;
    // By the process that they are about.
    struct Said {
        std::string program;
        std::vector<std::string> warnings, failures;
    };
    std::map<pid_t, Said> said_;
};

}  // namespace shadowprof::cli
