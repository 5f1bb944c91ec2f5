// Of a replica that writes to many pages it has not had for itself, where that is dear
// (pages_ahead.h): the neighbours of those that have become its own are copied as well, while it
// runs. A program that sorts what it has gathered writes to all of it within some milliseconds, and
// no sample before has told so.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/address.h"
#include "proc/maps.h"

namespace shadowprof::sampling {

class NeighbourPages {
  public:
    explicit NeighbourPages(bool copies_are_dear);
    ~NeighbourPages();
    NeighbourPages(const NeighbourPages&) = delete;
    NeighbourPages& operator=(const NeighbourPages&) = delete;

    // While this lives the replica is looked at, after so many faults. It has these pages for
    // itself without having written there; they are in order.
    class OfReplica {
      public:
        OfReplica(NeighbourPages& all, pid_t replica, std::shared_ptr<const proc::Maps> maps,
                  std::uint64_t faults, std::vector<Address> own);
        ~OfReplica() { end(); }
        OfReplica(const OfReplica&) = delete;
        OfReplica& operator=(const OfReplica&) = delete;

        // Nothing more is copied; so many were.
        std::size_t end();

      private:
        friend class NeighbourPages;
        void look();

        NeighbourPages& all_;
        const pid_t replica_;
        const std::shared_ptr<const proc::Maps> maps_;
        std::uint64_t between_looks_, next_look_ = 0;  // faults
        std::vector<Address> own_;                     // at the last look
        std::size_t copied_ = 0;
        std::uint64_t reach_ = 32;  // pages around a run, doubled at each look
    };

  private:
    void look_after();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::list<OfReplica*> living_;
    bool closed_ = false;
    std::thread looks_after_;  // if copies are dear
};

}  // namespace shadowprof::sampling
