// What all readers of rules share: what was counted of each place and key, folded into statistics
// sample by sample.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/random.h"
#include "profile/common/counting_sample.h"
#include "profile/common/hotlists.h"
#include "profile/common/open_samples.h"
#include "profile/common/state.h"
#include "profile/common/value_stream.h"
#include "profile/rule/rule_plans.h"
#include "profile/rule/rule_section.h"
#include "profile/rule/rule_set.h"
#include "profile/stream/stream_detector.h"
#include "trace/trace.h"

namespace shadowprof::profile {

// What an event is counted under.
struct RuleKey {
    std::uint32_t rule = 0;
    Location at;
    std::optional<Location> target = {};
    State state = {};  // as far as the rule asks for it
    bool operator==(const RuleKey&) const = default;
};

struct RuleKeyHash {
    std::size_t operator()(const RuleKey& key) const {
        auto hash = combine_hashes(hash_of(key.at), key.rule);
        if (key.target) hash = combine_hashes(hash, hash_of(*key.target));
        return combine_hashes(hash, StateHash{}(key.state));
    }
};

class RuleTally {
  public:
    RuleTally(const trace::BlockTable& blocks, const RuleSet& rules, std::uint64_t seed)
        : blocks_(blocks),
          rules_(rules),
          random_(seed),
          states_(rules.locks() ? &rules.names() : nullptr, &rules.functions()),
          plans_(blocks, rules),
          of_rules_(rules.rules().size()) {
        for (std::size_t n = 0; n < of_rules_.size(); ++n)
            if (rules.rules()[n].streams) streams_of_rules_.emplace(n, rules.functions());
    }

    using Stream = ValueStream<CountingSample>;

    // Counts of a rule: in a sample, or in a burst of it.
    struct Counted {
        std::uint64_t total = 0, unknown = 0;
        std::vector<std::pair<std::uint32_t, std::uint64_t>> entries = {};  // of a burst
    };
    struct OfRule {
        std::uint64_t total = 0, unknown = 0;
        bool is_covered = false;  // the sample has what the rule is about
        // Executions that may be events, those in windows of values, and all; and the events there.
        std::uint64_t read = 0, all = 0, in_windows = 0;
        // Calls and backward branches while the rule looked, and all, if it has bursts.
        std::uint64_t looked_at = 0, passed = 0;
        bool was_disabled = false;
        std::vector<Counted> bursts = {};
    };
    // References to data that were looked at for a rule, and which came after which.
    struct OfStreams {
        ReferenceGraph graph;
        std::uint64_t count = 0;
    };
    struct Sample {
        std::vector<OfRule> rules;
        FlatMap<std::uint64_t> counts;                  // by entry
        std::map<std::size_t, OfStreams> streams = {};  // by rule
    };
    OpenSamples<Sample>& samples() { return samples_; }
    Sample& open(trace::SampleId id) {
        auto& sample = samples_.open(id);
        sample.rules.resize(of_rules_.size());
        return sample;
    }
    void end_sample(trace::SampleId sample, std::uint64_t weight);
    // Also of a sample that goes on, if it counts once: so many bursts are enough to be kept.
    void fold_bursts(Sample& sample, std::size_t rule, std::uint64_t weight);

    const RulePlan& plan_of(trace::BlockId block) { return plans_.of(block); }

    // As far as the instruction says; nothing if it is not known where it led and that is part of
    // the key.
    std::optional<RuleKey> key_of(const trace::Block& block, const RuleHit& hit,
                                  const RuleExit* exit) const;
    // Executions of a block that were counted, not read.
    void count(Sample& sample, const trace::Block& from, Address next, const Location& place,
               std::uint64_t times);
    std::uint32_t entry_of(const RuleKey& key);
    void add_value(std::uint32_t entry, std::uint64_t value, trace::SampleId sample,
                   trace::TraceId trace);

    // A reference to data, of a rule with streams.
    void add_reference(Sample& sample, ReferenceGraph::Cursor& at, const trace::Block& block,
                       const RuleHit& hit, std::uint64_t address);
    // From time to time.
    static void make_room(Sample& sample) {
        for (auto& [rule, of] : sample.streams) of.graph.make_room();
    }

    const trace::BlockTable& blocks() const { return blocks_; }
    const RuleSet& rules() const { return rules_; }
    StateTable& states() { return states_; }
    Random& random() { return random_; }

    using NameOfCall = StateTable::NameOfCall;
    void yield(Hotlists& into, Seen seen, NameOfCall name_of_call);

  private:
    struct Entry {
        RuleKey key;
        Statistics statistics;
        Stream* values = nullptr;
    };
    struct Total {
        Totals totals;
        std::uint64_t read = 0, all = 0, looked_at = 0, passed = 0, in_windows = 0;
        bool was_disabled = false;
    };
    void fold(Sample& sample, std::uint64_t weight);
    void add_streams(std::size_t rule, NamedTotals& part, RuleHotlist& list);
    RuleHotlist::Entry found(const Entry& entry, Seen seen, NameOfCall name_of_call);

    const trace::BlockTable& blocks_;
    const RuleSet& rules_;
    Random random_;
    StateTable states_;
    RulePlans plans_;
    std::vector<Entry> entries_;
    std::unordered_map<RuleKey, std::uint32_t, RuleKeyHash> known_;
    std::deque<Stream> streams_;
    std::map<std::size_t, StreamDetector> streams_of_rules_;
    std::size_t next_look_ = 0;  // see shorten_rarest
    std::vector<Total> of_rules_;
    OpenSamples<Sample> samples_;
};

}  // namespace shadowprof::profile
