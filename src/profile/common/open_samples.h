// What a profiler keeps while a sample is being read. Several samples may be read at a time, and
// samples are many and short, so the state of an ended one is used again.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace shadowprof::profile {

template <class State>
class OpenSamples {
  public:
    // Stays where it is until the sample is closed.
    State& open(trace::SampleId sample) {
        auto& state = open_[sample];
        if (!state) {
            if (spare_.empty()) {
                state = std::make_unique<State>();
            } else {
                state = std::move(spare_.back());
                spare_.pop_back();
            }
        }
        return *state;
    }

    std::optional<trace::SampleId> first_open() const {
        return open_.empty() ? std::nullopt : std::optional(open_.begin()->first);
    }
    bool is_open(trace::SampleId sample) const { return open_.count(sample) != 0; }

    // `fold` takes what the state holds and leaves it as new.
    template <class Fold>
    void close(trace::SampleId sample, Fold fold) {
        const auto found = open_.find(sample);
        if (found == open_.end()) return;
        fold(*found->second);
        spare_.push_back(std::move(found->second));
        open_.erase(found);
    }

    // Samples that the end of the run cut off count with what was seen of them.
    template <class Fold>
    void close_all(Fold fold) {
        while (!open_.empty()) close(open_.begin()->first, fold);
    }

    template <class Visit>
    void for_each(Visit visit) {
        for (auto& [sample, state] : open_) visit(*state);
    }

  private:
    std::map<trace::SampleId, std::unique_ptr<State>> open_;
    std::vector<std::unique_ptr<State>> spare_;
};

}  // namespace shadowprof::profile
