// Counts of things by key, folded into statistics sample by sample: what most hotlists are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profile/common/hotlists.h"

namespace shadowprof::profile {

template <class Key, class Hash>
class Tally {
  public:
    struct Entry {
        Key key;
        Statistics statistics;
        std::uint64_t pending = 0;  // in the sample being folded
    };

    void add(const Key& key, std::uint64_t count) {
        const auto [found, is_new] =
            index_.try_emplace(key, static_cast<std::uint32_t>(entries_.size()));
        if (is_new) entries_.push_back({key, {}, 0});
        auto& entry = entries_[found->second];
        if (entry.pending == 0) touched_.push_back(found->second);
        entry.pending += count;
        total_ += count;
    }

    void add_unknown(std::uint64_t count) {
        totals_.unknown += count;
        total_ += count;
    }

    void end_sample() {
        for (const auto index : touched_) {
            auto& entry = entries_[index];
            entry.statistics.add_sample(std::exchange(entry.pending, 0), total_);
        }
        touched_.clear();
        totals_.add_sample(std::exchange(total_, 0));
    }

    const std::vector<Entry>& entries() const { return entries_; }
    Totals totals(Seen seen) const {
        auto totals = totals_;
        totals.exhaustive = seen == Seen::everything;
        return totals;
    }

  private:
    std::unordered_map<Key, std::uint32_t, Hash> index_;
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> touched_;
    std::uint64_t total_ = 0;  // of the sample being folded
    Totals totals_;
};

// The one order of hotlists: most weight first, ties by identity.
template <class Entry>
void sort_hotlist(std::vector<Entry>& entries) {
    std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
        const auto of_a = model::weight_of(a), of_b = model::weight_of(b);
        if (of_a != of_b) return of_a > of_b;
        if constexpr (requires { a.ties(); })
            if (a.ties() != b.ties()) return a.ties() < b.ties();
        return model::identity_of(a) < model::identity_of(b);
    });
}

}  // namespace shadowprof::profile
