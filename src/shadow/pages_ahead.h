// A replica has copies of the pages that it writes to, one by one, by traps. Under some hypervisors
// such a trap takes sixty microseconds, and most of a replica's time; written to from outside,
// thousands at a time, a page takes two. So where copies are dear those pages are copied before the
// replica begins that an earlier one had for itself at its end.
//
// What an earlier one had is a guess. A page that the target has written to meanwhile is the
// replica's own as well, and the next sample may write elsewhere. So one replica of several has
// nothing done for it, and tells anew: what it is worth is told by how many faults it has, and how
// many the others.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/address.h"
#include "ptrace/maps.h"

namespace shadowprof::shadow {

class PagesAhead {
  public:
    explicit PagesAhead(bool copies_are_dear) : copies_are_dear_(copies_are_dear) {}

    // What a replica, which is not running, began with.
    struct Beginning {
        bool teaches = false;  // nothing was copied for it
        std::optional<std::uint64_t> faults;
    };
    Beginning copy_for(pid_t replica, const ptrace::Maps& maps);
    // It has stopped, having run what was wanted of it.
    void learn(const Beginning& beginning, pid_t replica, const ptrace::Maps& maps);

  private:
    using Pages = std::vector<Address>;

    const bool copies_are_dear_;
    std::mutex mutex_;
    std::shared_ptr<const Pages> pages_ = std::make_shared<Pages>();
    std::uint64_t faults_without_ = 0;
    unsigned until_teaching_ = 0;  // replicas
};

}  // namespace shadowprof::shadow
