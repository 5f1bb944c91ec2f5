// A replica has copies of the pages that it writes to, one by one, by traps. Under some hypervisors
// such a trap takes sixty microseconds, and most of a replica's time; made from outside, many at a
// time, a copy takes two. So where copies are dear those pages are copied before the
// replica begins that an earlier one had for itself at its end.
//
// What an earlier one had is a guess. A page that the target has written to meanwhile is the
// replica's own as well, and the next sample may write elsewhere. So one replica of several has
// nothing done for it, and tells anew: what it is worth is told by how many faults it has, and how
// many the others. What is copied while a replica runs is another matter (neighbour_pages.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/address.h"
#include "proc/maps.h"

namespace shadowprof::sampling {

class PagesAhead {
  public:
    explicit PagesAhead(bool copies_are_dear) : copies_are_dear_(copies_are_dear) {}

    // One that tells which pages a sample writes to is not to be helped before it has had so many.
    static constexpr std::uint64_t faults_that_teach = 1024;

    // What a replica, which is not running, began with.
    struct Beginning {
        bool teaches = false;         // nothing was copied for it
        std::vector<Address> copied;  // in order
        std::optional<std::uint64_t> faults;
    };
    Beginning copy_for(pid_t replica, const proc::Maps& maps);
    // It has stopped, having run what was wanted of it. So many pages were copied meanwhile.
    void learn(const Beginning& beginning, pid_t replica, const proc::Maps& maps,
               std::size_t copied_meanwhile = 0);

  private:
    using Pages = std::vector<Address>;

    const bool copies_are_dear_;
    std::mutex mutex_;
    std::shared_ptr<const Pages> pages_ = std::make_shared<Pages>();
    double price_without_ = 0;
    // Replicas: more as long as what was told goes on to help.
    static constexpr unsigned fewest_between_teachers = 8;
    unsigned until_teaching_ = 0, between_teachers_ = fewest_between_teachers;
};

}  // namespace shadowprof::sampling
