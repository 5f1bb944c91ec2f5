// How fast a replica is outside of the code cache, where it runs as the original does.
//
// The replica leaves the cache for a while. Nothing records how much it executes meanwhile, but it
// passes a landmark, which was chosen from what it executed before. There a jump is put into its
// own code (its memory is a copy), which leads to a few instructions that count, and trap when the
// time is over. The first part of the stretch is not measured, because in the cache the replica has
// used other lines and branch predictions than it does here. Further parts are not measured either
// as long as the replica becomes faster or has many faults: under some hypervisors the first write
// to a page takes as long as half a million instructions, and the first read a tenth of that, by a
// trap that the kernel does not know of.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "emu/translator/native_rate/landmark.h"
#include "emu/translator/replica_cache.h"
#include "inject/replica.h"

namespace shadowprof::emu::translator {

class NativeStretch {
  public:
    // Serves a stop that the program itself caused (a system call, a fault); may change its
    // registers. False: the replica cannot go on.
    using Serve = std::function<bool(const inject::Replica::Stop&, ptrace::Registers&)>;

    NativeStretch(inject::Replica& replica, ReplicaCache& cache, ReplicaCache::Guest& guest,
                  Landmark landmark, const Serve& serve, double of_fault);

    // Runs from the program's state in `registers` for so long, and measures as much again, or
    // longer if that is inconclusive. Afterwards they are its state, and its code is what it was.
    // False: the replica cannot go on.
    bool run(ptrace::Registers& registers, double nanoseconds);

    // Nanoseconds of an instruction; nothing if the program went elsewhere, or if waits that only
    // replicas have hide everything else.
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
    // Of so many visits; nothing if the program did not pass so often.
    std::optional<Part> run_part(ptrace::Registers& registers, std::uint64_t visits,
                                 double longest);
    void leave_counting_code(ptrace::Registers& registers);
    ThreadArea& area() const { return cache_.memory().area(cache_.area_number(guest_)); }

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
