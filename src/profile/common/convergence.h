// How well the profile is known so far, and whether the program still does what it did.
//
// Code is put into a few hundred bins by where it is, and for each bin the share of instructions is
// estimated as for any entry (statistics.h). The widest half interval is the precision: no part of
// the program is known worse. And each new sample is compared with those before it: its *distance*
// is the part of its instructions that is elsewhere than the shares so far say. Single samples are
// at a distance from the whole even if nothing changes (a phase, a loop); but if those of late are
// further away than samples used to be, by more than chance explains, the program behaves anew.
// Then what was seen before counts for less and less, until the precision is that of the new
// behaviour.
//
// So sampling may take its time once the precision is good enough, and hurry when something
// changes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profile/common/transitions.h"

namespace shadowprof::profile {

// The same for samples of any kind: the instructions of each bin.
class ShareTracker {
  public:
    static constexpr std::size_t bins = 256;
    using Sample = std::array<double, bins>;

    void add(const Sample& sample);
    std::uint64_t samples() const { return samples_; }
    // Half the widest 95 % interval; 1 as long as too little was seen.
    double precision() const;
    std::uint64_t changes() const { return changes_; }  // of behaviour, so far

  private:
    void forget_most();

    // Old samples may weigh less, so these are no integers.
    struct Sums {
        double x = 0, squares = 0, products = 0;
    };
    std::array<Sums, bins> sums_{};
    double weight_ = 0, total_ = 0, total_squares_ = 0;  // of samples, their instructions, squares
    std::uint64_t samples_ = 0;
    // Distances: of all, and of late.
    double distances_ = 0, square_distances_ = 0, distance_weight_ = 0;
    static constexpr std::size_t of_late = 8;
    std::array<double, of_late> latest_{};
    std::size_t latest_count_ = 0;
    std::uint64_t changes_ = 0;
};

// Fills no hotlist. Other threads may read the precision.
class Convergence : public TransitionProfile {
  public:
    explicit Convergence(std::atomic<double>& precision) : precision_(precision) {
        precision_ = tracker_.precision();
    }

    void add(const trace::Block& from, Address next, const Location& place,
             std::uint64_t count) override;
    void end_sample() override;
    void yield(Hotlists&, Seen) override {}

  private:
    ShareTracker::Sample sample_{};  // that is being added
    ShareTracker tracker_;
    std::atomic<double>& precision_;
};

}  // namespace shadowprof::profile
