// machine: what this host charges a program for being looked at (stops, forks, copies of pages),
// and what its clock and its memory are like. The room knows no sample and no instruction.
//
// This file: the charges. What one of each costs is measured once, in processes of our own; how
// many there were, and what the measurement could not know, follows from the target as it runs.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"

namespace shadowprof::machine {

struct HostPrices {
    Seconds page_copy;       // the first write to a page that is shared with a living replica
    Seconds page_aftermath;  // … with one that has ended
    Seconds fork;            // of a small process
    Seconds intermediary;    // that another process forks the replica, and the thread waits for it
    // A stop that is passed on. Late after another one the tracing thread's processor sleeps, and
    // in some virtual machines waking it takes several times as long as all the rest.
    Seconds early_stop, late_stop;
    // What a thread loses each time that the kernel looks at it by its clock (proc/thread_clock.h),
    // its registers and stack included; 0 if that is refused.
    Seconds look;

    // A hypervisor keeps page tables of its own: whatever enters the kernel is dear.
    bool faults_are_dear() const;
};

// Measured at the first call, which takes some 20 ms, or 65 where page faults are dear: best before
// there is a target that would wait for it. `may_be_kept`, which the first call decides: they may
// be those that an earlier run of today has measured.
const HostPrices& host_prices(bool may_be_kept = false);
// The contents of the file in which they are kept, and back: nothing if it is of another boot of
// the machine, or damaged.
std::string written(const HostPrices& prices, const std::string& boot);
std::optional<HostPrices> read_prices(const std::string& text, const std::string& boot);
// That so many pages' tables are copied.
Seconds page_tables(double pages);

// What one target has been charged, and is about to be.
class HostCharges {
  public:
    explicit HostCharges(pid_t target);
    ~HostCharges();
    HostCharges(HostCharges&&) noexcept;
    HostCharges& operator=(HostCharges&&) noexcept;

    // A stop just now that tracing brings with it and that yields no sample: a signal's delivery,
    // say. A program may have tens of thousands of them a second.
    Seconds passing_stop();

    // What replicas cost the target since the last call, in forks and page faults; so many are
    // alive now. The first write to each page that the target shares with a replica copies the
    // page, and when the replica is gone, the first write still has to make the page writable
    // again, whenever that is. The kernel counts both as page faults without reading (minor
    // faults). The program has such faults of its own: those by which its memory grows, and others,
    // as many a second as before.
    Seconds replicas(std::size_t alive);
    // What a fork may cost that none has shown yet: nobody knows whether the target is going to
    // write to the pages that it has more than at any fork before.
    Seconds risk_of_fork() const;
    // The target has executed another program: what forks protected is gone.
    void memory_is_new();
    // Those that replicas brought about, so far.
    std::uint64_t extra_faults() const { return static_cast<std::uint64_t>(extra_faults_); }

  private:
    class FreshPages;

    Seconds faults_since_last_look(std::size_t alive);
    double pages_of_target() const;

    pid_t target_;
    Clock::time_point last_stop_;

    Clock::time_point last_look_ = Clock::now();
    std::size_t alive_ = 0;
    // Of the target, at the last look.
    std::optional<std::uint64_t> faults_;
    double pages_;
    // Pages, at most, that a fork has protected and nobody has written to yet; by one fork.
    double protected_ = 0, most_protected_ = 0;
    double own_rate_ = 0;  // the target's own faults a second, without those by which it grows
    Seconds rate_known_for_{0};  // a second at most
    double extra_faults_ = 0;
    std::unique_ptr<FreshPages> fresh_pages_;  // once there was a replica
};

}  // namespace shadowprof::machine
