// The processes that a process has started, those that these have started, and so on: found from
// outside. The kernel numbers processes one after the other, so a look at the numbers that were
// given since the last look finds them all, and costs nothing where there are none.
//
// A process that ends between two looks is not found; nor is one whose parent was not.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "proc/proc_file.h"
#include "proc/process_info.h"

namespace shadowprof::proc {

class Descendants {
  public:
    // `is_new`: it has been started just now, and can have none that are older than we.
    Descendants(pid_t ancestor, bool is_new);

    // Those that were not known yet, parents before their children.
    std::vector<Birth> look();
    // It has ended: what is given its number now is another process.
    void forget(pid_t pid) { known_.erase(pid); }

  private:
    pid_t newest_number();
    std::vector<pid_t> candidates();

    ProcFile last_number_{"/proc/loadavg"};
    std::map<pid_t, std::uint64_t> known_;  // and when they were started
    // The greatest numbers at the last looks. One may have been given, and the process not yet be
    // seen.
    pid_t newest_ = -1, newest_before_ = -1;
};

}  // namespace shadowprof::proc
