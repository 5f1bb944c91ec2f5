// Makes pages a replica's own before it writes to them.
//
// A replica has copies of the pages that it writes to, one by one, by traps. Under some hypervisors
// such a trap takes sixty microseconds, and most of a replica's time; a copy that is made from
// outside, many at a time, takes two. So where copies are dear two guesses are made:
//
// *Ahead*: before a replica begins, the pages are copied that an earlier one had for itself at its
// end. A page that the target has written to meanwhile is the replica's own as well, and the next
// sample may write elsewhere. So one replica of several, which teaches, has nothing copied for it,
// and shows anew what would have been of use: whether that was worth it follows from how many
// faults it has, and how many the others.
//
// *Meanwhile*: while a replica runs, the neighbours of pages that have become its own are copied. A
// program that sorts what it has gathered writes to all of it within some milliseconds, and no
// sample before has shown so.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/address.h"
#include "proc/maps.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

class PageCopier {
  public:
    struct Plan {
        bool ahead = true, meanwhile = true;
        // One that teaches is not to be helped before it has had so many.
        std::uint64_t faults_that_teach = tuning::faults_that_teach;
    };
    explicit PageCopier(Plan plan);
    ~PageCopier();
    PageCopier(const PageCopier&) = delete;
    PageCopier& operator=(const PageCopier&) = delete;

    // From before a replica begins to its end.
    class OfReplica {
      public:
        // It is not running.
        OfReplica(PageCopier& all, pid_t replica, std::shared_ptr<const proc::Maps> maps);
        ~OfReplica() { end(); }
        OfReplica(const OfReplica&) = delete;
        OfReplica& operator=(const OfReplica&) = delete;

        // Nothing more is copied. So many pages were while it ran.
        std::size_t end();
        // It has stopped, having run what was wanted of it.
        void learn();

      private:
        friend class PageCopier;
        void copy_ahead();
        void copy_neighbours();

        PageCopier& all_;
        const pid_t replica_;
        const std::shared_ptr<const proc::Maps> maps_;
        bool teaches_ = false;
        std::optional<std::uint64_t> faults_before_;
        std::size_t copied_ahead_ = 0, copied_meanwhile_ = 0;
        std::vector<Address> own_;                         // at the last look, in order
        std::uint64_t between_looks_ = 0, next_look_ = 0;  // faults
        std::uint64_t reach_ =
            tuning::first_neighbours;  // pages around a run, doubled at each look
    };

  private:
    using Pages = std::vector<Address>;

    void look_after_living();
    void learn_from_teacher(double paid, Pages pages);
    void learn_from_other(double paid);

    const Plan plan_;
    std::mutex mutex_;
    // Of the last that taught: its pages, if they are of use, and what it paid.
    std::shared_ptr<const Pages> pages_ = std::make_shared<Pages>();
    double paid_without_ = 0;
    // Replicas: more as long as what was learnt goes on to help.
    unsigned until_teaching_ = 0, between_teachers_ = tuning::fewest_between_teachers;

    std::condition_variable changed_;
    std::list<OfReplica*> living_;
    bool closed_ = false;
    std::thread looks_after_;
};

}  // namespace shadowprof::sampling
