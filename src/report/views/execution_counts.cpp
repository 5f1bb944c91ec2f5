#include "report/views/execution_counts.h"

#include <algorithm>
#include <limits>

namespace shadowprof::report {

namespace {

constexpr auto nowhere = std::numeric_limits<std::size_t>::max();

std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
    return a > ~std::uint64_t{0} - b ? ~std::uint64_t{0} : a + b;
}

class Counter {
  public:
    Counter(const Profile& profile, ModuleIndex module,
            const std::vector<ListedInstruction>& instructions)
        : p_(profile),
          module_(module),
          listed_(instructions),
          implied_(listed_.size()),
          entered_(listed_.size()),
          left_(listed_.size()) {}

    std::vector<std::uint64_t> count() {
        if (p_.find<PathSection>()) count_paths(*p_.find<PathSection>());
        if (p_.find<EdgeSection>()) count_edges(*p_.find<EdgeSection>());
        if (p_.find<ValueSection>()) count_values(*p_.find<ValueSection>());
        return spread();
    }

  private:
    std::size_t position(LocationIndex i) const {
        const auto& l = p_.at(i);
        if (l.module != module_ || l.content != 0) return nowhere;
        const auto at = std::lower_bound(
            listed_.begin(), listed_.end(), l.offset,
            [](const ListedInstruction& x, std::uint64_t offset) { return x.offset < offset; });
        if (at == listed_.end() || at->offset != l.offset) return nowhere;
        return static_cast<std::size_t>(at - listed_.begin());
    }

    void count_paths(const PathSection& paths) {
        // The difference between how often a block begins at an instruction and how often one ended
        // before it. The running sum of these is how often paths ran through each instruction.
        // Unsigned wrap-around cancels out.
        std::vector<std::uint64_t> change(listed_.size() + 1);
        for (const auto& e : paths.entries)
            for (const auto& b : e.blocks) {
                const auto begin = position(b.start), end = position(b.end);
                if (begin == nowhere || end == nowhere || end < begin) continue;
                change[begin] += e.statistics.count;
                change[end + 1] -= e.statistics.count;
            }
        std::uint64_t running = 0;
        for (std::size_t i = 0; i < listed_.size(); ++i)
            implied_[i] = std::max(implied_[i], running += change[i]);
    }

    void count_edges(const EdgeSection& edges) {
        for (const auto& e : edges.entries) {
            if (const auto i = position(e.to); i != nowhere)
                entered_[i] = saturating_sum(entered_[i], e.statistics.count);
            if (const auto i = position(e.from); i != nowhere)
                left_[i] = saturating_sum(left_[i], e.statistics.count);
        }
    }

    // Each operand of an instruction has an entry, or several if there are contexts.
    void count_values(const Hotlist<ValueEntry>& values) {
        struct Key {
            std::size_t position;
            ValueKind kind;
            std::uint32_t operand;
            auto operator<=>(const Key&) const = default;
        };
        std::vector<std::pair<Key, std::uint64_t>> counts;
        for (const auto& e : values.entries)
            if (const auto i = position(e.location); i != nowhere)
                counts.push_back({{i, e.kind, e.operand_index}, e.all_executions()});
        std::sort(counts.begin(), counts.end());
        for (std::size_t i = 0; i < counts.size();) {
            const auto key = counts[i].first;
            std::uint64_t sum = 0;
            for (; i < counts.size() && counts[i].first == key; ++i)
                sum = saturating_sum(sum, counts[i].second);
            implied_[key.position] = std::max(implied_[key.position], sum);
        }
    }

    std::vector<std::uint64_t> spread() const {
        std::vector<std::uint64_t> counts(listed_.size());
        for (std::size_t begin = 0; begin < listed_.size();) {
            std::size_t end = begin + 1;
            while (end < listed_.size() && listed_[end].follows_previous &&
                   !listed_[end - 1].ends_block && entered_[end] == 0)
                ++end;
            const bool falls_in =
                begin > 0 && listed_[begin].follows_previous && !listed_[begin - 1].ends_block;
            std::uint64_t most = entered_[begin];
            if (falls_in && p_.find<EdgeSection>()) most = saturating_sum(most, counts[begin - 1]);
            for (std::size_t i = begin; i < end; ++i)
                most = std::max({most, implied_[i], left_[i]});
            std::fill(counts.begin() + static_cast<std::ptrdiff_t>(begin),
                      counts.begin() + static_cast<std::ptrdiff_t>(end), most);
            begin = end;
        }
        return counts;
    }

    const Profile& p_;
    const ModuleIndex module_;
    const std::vector<ListedInstruction>& listed_;
    std::vector<std::uint64_t> implied_;  // by paths and values
    std::vector<std::uint64_t> entered_;  // by edges to it
    std::vector<std::uint64_t> left_;     // by edges from it
};

}  // namespace

std::optional<std::vector<std::uint64_t>> execution_counts(
    const Profile& profile, ModuleIndex module,
    const std::vector<ListedInstruction>& instructions) {
    if (!profile.find<PathSection>() && !profile.find<EdgeSection>() &&
        !profile.find<ValueSection>())
        return {};
    return Counter(profile, module, instructions).count();
}

}  // namespace shadowprof::report
