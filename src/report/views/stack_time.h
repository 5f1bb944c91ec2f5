// What part of the time on processors was spent on something, by the calling stacks in which the
// clock saw threads. Shares are of the time whose stacks are known: a busy machine leaves no time
// to unwind them all.
#pragma once

#include <cstdint>

#include "report/model/profile.h"
#include "report/tuning.h"
#include "report/views/shares.h"

namespace shadowprof::report {

class StackTime {
  public:
    explicit StackTime(const Profile& profile) : list_(profile.find<TimeSection>()) {
        each([this](const auto& e) { add(known_, e.statistics); });
    }

    // Whether the clock looked often enough that shares of time mean something.
    std::uint64_t looks() const { return known_.samples; }
    bool is_known() const { return known_.samples >= tuning::least_looks; }
    // `is` gets an entry whose thread was on a processor.
    template <class Is>
    Share share(Is is) const {
        Statistics sum;
        each([&](const auto& e) {
            if (is(e)) sum.merge(e.statistics);
        });
        return share_of_sum(sum);
    }
    template <class Use>
    void each(Use use) const {
        if (!list_) return;
        for (const auto& e : list_->entries)
            if (!profile::is_waiting(e.state) && !e.frames.empty()) use(e);
    }
    Share share_of_sum(const Statistics& sum) const { return share_of(sum, known_); }

  private:
    // Each look is of one stack.
    static void add(Totals& sum, const Statistics& of) {
        sum.samples += of.samples;
        sum.total += of.count;
        sum.total_squares += of.squares;
    }

    const TimeSection* list_;
    Totals known_;
};

}  // namespace shadowprof::report
