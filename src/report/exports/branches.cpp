#include "report/exports/branches.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "model/utf8.h"
#include "report/diff/shapes.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

constexpr std::uint64_t longest_stretch = 4096;  // a gap in a profile must not become a range

ModuleIndex find_module(const Profile& p, const std::string& wanted) {
    const auto name = wanted.empty() ? program_of(p) : wanted;
    for (ModuleIndex i = 0; i < p.modules.size(); ++i)
        if (p.modules[i].path == name) return i;
    for (ModuleIndex i = 0; i < p.modules.size(); ++i)
        if (!name.empty() && file_name(p.modules[i].path) == file_name(name)) return i;
    std::vector<std::string> known;
    for (const auto& m : p.modules) known.push_back(printable(m.path));
    throw UserError(
        fmt::format("no module {} in the profile; there are: {}; choose one with --module",
                    printable(name), fmt::join(known, ", ")));
}

}  // namespace

ModuleBranches::ModuleBranches(const Profile& p, const std::string& wanted) {
    if (!p.find<EdgeSection>()) throw UserError("no edges in the profile: profile with -p edge");
    const auto index = find_module(p, wanted);
    module_ = p.modules[index];
    dropped_ = p.find<EdgeSection>()->dropped != 0;
    sampled_ = !p.find<EdgeSection>()->totals.exhaustive;
    for (const auto& e : p.find<EdgeSection>()->entries) {
        const auto& from = p.at(e.from);
        const auto& to = p.at(e.to);
        ModuleBranch b{from.offset,        to.offset, from.module == index,
                       to.module == index, e.kind,    e.statistics.count};
        if (b.from_inside || b.to_inside) branches_.push_back(b);
    }
    if (branches_.empty()) throw UserError(fmt::format("no edges in {}", printable(module_.path)));
    std::sort(branches_.begin(), branches_.end(), [](const auto& a, const auto& b) {
        return std::tuple(!a.from_inside, a.from, !a.to_inside, a.to, a.kind) <
               std::tuple(!b.from_inside, b.from, !b.to_inside, b.to, b.kind);
    });
}

std::vector<CodeRange> ModuleBranches::ranges() const {
    std::map<std::uint64_t, std::uint64_t> entered;
    std::vector<std::uint64_t> left;
    for (const auto& b : branches_) {
        if (b.to_inside) entered[b.to] += b.count;
        if (b.from_inside) left.push_back(b.from);
    }
    std::sort(left.begin(), left.end());
    std::vector<CodeRange> ranges;
    for (const auto& [begin, count] : entered) {
        const auto last = std::lower_bound(left.begin(), left.end(), begin);
        if (last != left.end() && *last - begin <= longest_stretch)
            ranges.push_back({begin, *last, count});
    }
    return ranges;
}

std::vector<std::string> ModuleBranches::notes() const {
    std::vector<std::string> notes;
    if (dropped_)
        notes.emplace_back(
            "--limit has dropped edges: profile with --limit 0, or code that seems "
            "never to run will be laid out as such");
    return notes;
}

std::vector<CodeRange> disjoint(const std::vector<CodeRange>& ranges) {
    // How many ranges begin at an address, less those that ended before it. Unsigned wrap-around
    // cancels out.
    std::map<std::uint64_t, std::uint64_t> change;
    for (const auto& r : ranges) {
        change[r.begin] += r.count;
        change[r.last + 1] -= r.count;
    }
    std::vector<CodeRange> out;
    std::uint64_t running = 0;
    std::optional<std::uint64_t> begin;
    for (const auto& [address, difference] : change) {
        if (begin && running != 0) out.push_back({*begin, address - 1, running});
        running += difference;
        begin = address;
    }
    return out;
}

}  // namespace shadowprof::report
