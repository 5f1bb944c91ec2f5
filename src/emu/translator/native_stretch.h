// How fast a replica is outside of the code cache, where it runs as the original does.
//
// It leaves the cache for a while. How much it executes meanwhile nobody writes down; but it comes
// by a landmark, which was chosen from what it executed before, and there a jump is put into its
// own code (its memory is a copy) that leads to a few instructions which count, and trap when the
// time is over. The first part of the stretch is not measured: in the cache it has used other lines
// and branch predictions than it does here. Nor are more of them, as long as it becomes faster or
// has many faults: under some hypervisors a page that it writes to first takes as long as half a
// million instructions, and one that it only reads a tenth of that, by a trap that the kernel knows
// nothing of.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "emu/translator/landmark.h"
#include "emu/translator/replica_cache.h"
#include "inject/replica.h"

namespace shadowprof::emu::translator {

class NativeStretch {
  public:
    // A stop that is the program's own business (a system call, a fault), with its registers, which
    // may be changed. False: it cannot go on.
    using Serve = std::function<bool(const inject::Replica::Stop&, ptrace::Registers&)>;

    NativeStretch(inject::Replica& replica, ReplicaCache& cache, ReplicaCache::Guest& guest,
                  Landmark landmark, const Serve& serve, double of_fault);

    // Runs from the program's state in `registers`, for so long, and measures as much again, or,
    // where that tells nothing, longer. Then they are its state, and its code is what it was.
    // False: it cannot go on.
    bool run(ptrace::Registers& registers, double nanoseconds);

    // Nanoseconds of an instruction; nothing if it went elsewhere, or if what replicas alone wait
    // for leaves nothing to be seen.
    std::optional<double> rate() const { return rate_; }

  private:
    std::optional<Address> counting_code();
    bool put_jump(Address counting);
    bool run_parts(ptrace::Registers& registers, double nanoseconds);
    struct Part {
        double nanoseconds, of_faults;
        double of_program() const { return nanoseconds - of_faults; }
        double part_of_faults() const { return of_faults / nanoseconds; }
    };
    // Of so many visits; nothing if it did not come by so often.
    std::optional<Part> run_part(ptrace::Registers& registers, std::uint64_t visits,
                                 double longest);
    void leave_counting_code(ptrace::Registers& registers);
    ThreadArea& area() const { return cache_.area(guest_); }

    inject::Replica& replica_;
    ReplicaCache& cache_;
    ReplicaCache::Guest& guest_;
    Landmark landmark_;
    const Serve& serve_;
    double of_fault_;
    bool is_alive_ = true;
    std::optional<double> rate_;
};

}  // namespace shadowprof::emu::translator
