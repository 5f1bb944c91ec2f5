#include "report/exports/run_ons.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>

#include "report/diff/sweep.h"

namespace shadowprof::report {

namespace {

// Of one function: where blocks begin, by its jumps, and which instruction runs on into each.
class Blocks {
  public:
    Blocks(const BinaryFunction& function, std::span<const std::byte> code) {
        std::set<std::uint64_t> targets;
        std::uint64_t before = 0;
        bool runs_on = false;
        sweep(code, Address{function.begin}, [&](const decoder::Instruction& i, bool follows) {
            using enum decoder::Flow;
            if (i.flow == conditional || i.flow == jump) targets.insert(i.target.value);
            if (follows && runs_on) before_.emplace(i.address.value, before);
            before = i.address.value;
            runs_on = i.flow == next || i.flow == call || i.flow == indirect_call ||
                      i.flow == system_call;
        });
        for (const auto target : targets) begins_at(target);
    }

    // Of jump tables, only the targets that were seen are known.
    void begins_at(std::uint64_t address) {
        if (const auto found = before_.find(address); found != before_.end())
            begins_.emplace(*found);
    }

    // Calls visit(the instruction before, the beginning) for each block that begins between `from`
    // and `last`.
    template <class Visit>
    void each(std::uint64_t from, std::uint64_t last, Visit visit) const {
        for (auto b = begins_.lower_bound(from); b != begins_.end() && b->first <= last; ++b)
            visit(b->second, b->first);
    }

  private:
    std::map<std::uint64_t, std::uint64_t> before_, begins_;
};

}  // namespace

std::vector<RunOn> run_ons(const ModuleBranches& branches, const BinaryNames& names) {
    std::map<std::uint64_t, Blocks> by_function;
    const auto blocks_of = [&](const BinaryFunction& f) -> Blocks& {
        if (const auto known = by_function.find(f.begin); known != by_function.end())
            return known->second;
        return by_function.try_emplace(f.begin, f, names.code_of(f)).first->second;
    };
    for (const auto& b : branches.all()) {
        if (b.kind != EdgeKind::indirect || !b.from_inside || !b.to_inside) continue;
        const auto* f = names.at(b.to);
        if (f && names.at(b.from) == f) blocks_of(*f).begins_at(b.to);
    }
    std::map<std::uint64_t, RunOn> by_address;
    const auto ran_on = [&](std::uint64_t last, std::uint64_t next, std::uint64_t count) {
        auto& r = by_address.try_emplace(next, RunOn{last, next, 0}).first->second;
        r.count += count;
    };
    for (const auto& range : branches.ranges()) {
        const auto* f = names.at(range.begin);
        if (!f) continue;
        blocks_of(*f).each(range.begin + 1, range.last,
                           [&](auto last, auto next) { ran_on(last, next, range.count); });
    }
    // After a call, where another instruction jumps to as well.
    for (const auto& b : branches.all()) {
        const auto* f = b.kind == EdgeKind::return_ && b.to_inside ? names.at(b.to) : nullptr;
        if (!f) continue;
        blocks_of(*f).each(b.to, b.to, [&](auto last, auto next) { ran_on(last, next, b.count); });
    }
    std::vector<RunOn> all;
    std::transform(by_address.begin(), by_address.end(), std::back_inserter(all),
                   [](const auto& entry) { return entry.second; });
    return all;
}

}  // namespace shadowprof::report
