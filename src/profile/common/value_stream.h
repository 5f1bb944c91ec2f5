// The values that something has had, one after the other, sample by sample: of an operand of one
// instruction, in one context.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/random.h"
#include "base/x86.h"
#include "profile/common/hotlists.h"
#include "profile/common/open_samples.h"
#include "profile/common/stride.h"
#include "profile/value/value_section.h"
#include "profile/value/value_slots.h"
#include "trace/trace.h"

namespace shadowprof::profile {

// How often there was a value, which ones, and whether they follow a stride.
//
// Counts are folded into statistics when the stream is next touched in another sample, so that the
// end of a sample does not visit every stream there is. Where samples are read at the same time, a
// stream may be touched in turn by two that are both open: the counts of the one it turns away from
// are parked until that sample has ended.
template <class Sketch>
class alignas(64) ValueStream {
  public:
    ValueStream(std::size_t slots, unsigned bits) : bits_(bits), sketch_(slots) {}

    bool is_at(trace::SampleId sample) const { return sample == sample_; }
    void add(std::uint64_t value, trace::TraceId trace, Random& random) {
        ++pending_;
        stride_.add(value, trace, bits_);
        sketch_.add(value, random);
    }

    // What add() will need, in this order.
    void prefetch() const {
        const auto* const begin = reinterpret_cast<const std::byte*>(this);
        const auto* const end = reinterpret_cast<const std::byte*>(&executions_);
        for (const auto* at = begin; at < end; at += cache_line) __builtin_prefetch(at);
    }
    void prefetch_table(std::uint64_t value) const { sketch_.slots().prefetch_table(value); }
    void prefetch_slot(std::uint64_t value) const { sketch_.slots().prefetch_slot(value); }

    template <class State>
    void turn_to(trace::SampleId sample, const OpenSamples<State>& samples) {
        put_down(samples);
        sample_ = sample;
    }

    // After this the results below are complete for all samples that have ended.
    template <class State>
    void put_down(const OpenSamples<State>& samples) {
        if (pending_ != 0) {
            if (parked_.empty() && !samples.is_open(sample_)) {
                sketch_.slots().fold(pending_);
                executions_.add_sample(pending_);
            } else {
                park();
            }
            pending_ = 0;
        }
        const auto has_ended = [&](const Parked& parked) {
            return !samples.is_open(parked.sample);
        };
        for (auto& parked : parked_)
            if (has_ended(parked)) fold(parked);
        std::erase_if(parked_, has_ended);
    }

    // Keeps as many values at most, from now on.
    void shorten(std::size_t slots, Random& random) { sketch_.shorten(slots, random); }

    const Totals& executions() const { return executions_; }
    const Sketch& sketch() const { return sketch_; }
    const StrideDetector& stride() const { return stride_; }

  private:
    struct Parked {
        struct Count {
            std::uint64_t value = 0, count = 0;
        };
        trace::SampleId sample{};
        std::uint64_t executions = 0;
        std::vector<Count> counts;  // several of a value that came several times
        std::size_t most_counts = 32;

        void add(Count count) {
            counts.push_back(count);
            if (counts.size() < most_counts) return;
            merge();
            most_counts = std::max(most_counts, 2 * counts.size());
        }
        // One of each value.
        void merge() {
            std::sort(counts.begin(), counts.end(),
                      [](const Count& a, const Count& b) { return a.value < b.value; });
            std::size_t merged = 0;
            for (const auto each : counts) {
                if (merged != 0 && counts[merged - 1].value == each.value)
                    counts[merged - 1].count += each.count;
                else
                    counts[merged++] = each;
            }
            counts.resize(merged);
        }
    };

    // Counters must stay right while the sums of squares wait.
    void park() {
        Parked* place = nullptr;
        for (auto& parked : parked_)
            if (parked.sample == sample_) place = &parked;
        if (place == nullptr) {
            place = &parked_.emplace_back();
            place->sample = sample_;
        }
        place->executions += pending_;
        sketch_.slots().fold_pending([&](ValueSlot& slot, std::uint64_t count) {
            slot.statistics.count += count;
            place->add({slot.value, count});
        });
    }

    void fold(Parked& parked) {
        parked.merge();
        executions_.add_sample(parked.executions);
        for (const auto& [value, count] : parked.counts) {
            if (auto* slot = sketch_.slots().find(value)) {
                slot->statistics.add_sample(count, parked.executions);
                slot->statistics.count -= count;
            }
        }
    }

    // What add() needs comes first.
    std::uint64_t pending_ = 0;  // executions in the sample being read
    trace::SampleId sample_{0xffffffff};
    unsigned bits_;
    StrideDetector stride_;
    Sketch sketch_;
    Totals executions_;
    std::vector<Parked> parked_;
};

// Keeps lists of values, of which all together hold so many at most: those of the rarest streams
// become shorter. Returns how many streams there are to be when it is called again.
template <class Streams, class State>
std::size_t shorten_rarest(Streams& streams, const OpenSamples<State>& samples,
                           std::size_t most_listed, Random& random) {
    constexpr std::size_t part_that_is_new = 8, fewest_new = 64, part_that_is_hot = 8;
    const auto next = streams.size() + std::max(fewest_new, streams.size() / part_that_is_new);
    std::size_t listed = 0;
    std::vector<typename Streams::value_type*> rarest_first;
    for (auto& stream : streams) {
        stream.put_down(samples);
        listed += stream.sketch().slots().size();
        rarest_first.push_back(&stream);
    }
    if (listed <= most_listed) return next;
    std::stable_sort(rarest_first.begin(), rarest_first.end(),
                     [](const auto* one, const auto* other) {
                         return one->executions().total < other->executions().total;
                     });
    const auto rare = rarest_first.size() - rarest_first.size() / part_that_is_hot;
    for (const auto among : {rare, rarest_first.size()}) {
        for (const std::size_t most : {64, 16, 4, 1}) {
            for (std::size_t n = 0; n < among; ++n) {
                if (listed <= most_listed / 2) return next;
                auto& stream = *rarest_first[n];
                listed -= stream.sketch().slots().size();
                stream.shorten(most, random);
                listed += stream.sketch().slots().size();
            }
        }
    }
    return next;
}

// The most frequent values, as a profile has them; what is not told counts as unknown.
template <class Stream>
CountedValues counted_values(const Stream& stream) {
    CountedValues counted;
    counted.executions = stream.executions();
    counted.stride = stream.stride().stride();
    const auto& sketch = stream.sketch();
    counted.probability_inverse = sketch.probability_inverse();
    for (const auto& slot : sketch.slots().all())
        if (sketch.resolves(slot))
            counted.top.push_back({slot.value, slot.statistics.scaled_to(sketch.estimate(slot))});
    ValuesField::sort_values(counted.top);
    auto& unknown = counted.executions.unknown = counted.executions.total;
    const auto first_too_many =
        std::find_if(counted.top.begin(), counted.top.end(), [&](const ValueShare& share) {
            if (share.statistics.count > unknown) return true;
            unknown -= share.statistics.count;
            return false;
        });
    counted.top.erase(first_too_many, counted.top.end());
    return counted;
}

}  // namespace shadowprof::profile
