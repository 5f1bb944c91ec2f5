// Threads that wait in a loop, by what the clock saw of the functions with such loops. Those in
// libraries (libgomp, spin locks) are one finding for each library, told where the user's code
// calls it.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "report/opportunities/finders.h"
#include "report/opportunities/spin_loops.h"
#include "report/text/format.h"
#include "report/views/stack_time.h"
#include "report/views/users_place.h"

namespace shadowprof::report {

namespace {

using Function = std::tuple<ModuleIndex, std::uint64_t, std::uint64_t>;
Function function_of(const Location& l) {
    return {l.module, l.content, l.function_offset.value_or(l.offset)};
}

// Loops of one library, or of one function of the user's.
using Group = std::pair<ModuleIndex, std::optional<Function>>;

class SpinFinder {
  public:
    SpinFinder(const Evidence& e, Symbols& symbols)
        : e_(e), symbols_(symbols), time_(e.profile()) {}

    std::vector<Finding> find() {
        std::map<Group, std::vector<SpinLoop>> groups;
        for (Point at = 0; at < e_.points(); ++at)
            for (const auto* edge : e_.edges_from(at))
                if (auto loop = spin_loop(e_, symbols_, *edge)) {
                    const auto& l = e_.place(at);
                    const auto function = function_of(l);
                    groups[is_library(l) ? Group{l.module, {}} : Group{l.module, function}]
                        .push_back(std::move(*loop));
                }
        std::vector<Finding> found;
        for (auto& [group, loops] : groups) {
            std::ranges::sort(loops, std::ranges::greater{},
                              [](const auto& l) { return l.work(); });
            found.push_back(finding_of(loops));
        }
        return found;
    }

  private:
    const Profile& p() const { return e_.profile(); }
    bool is_library(const Location& l) const {
        return is_system_library(p().modules[l.module].path);
    }
    const Location& place_of(const SpinLoop& loop) const { return p().at(loop.back->to); }

    // Of all that its function executes.
    double part_of_function(const SpinLoop& loop, const std::vector<SpinLoop>& all) const {
        const auto* method = e_.method_at(e_.entry_of(e_.point(loop.back->to)));
        if (!method) return 0;
        double slow = 0;  // what pauses and locks weigh besides being instructions
        for (const auto& other : all)
            if (function_of(place_of(other)) == function_of(place_of(loop)))
                slow += other.work() - real(other.back->statistics.count) * other.instructions;
        return std::min(1.0, loop.work() / (real(method->instructions.count) + slow));
    }

    Share time_of(const std::vector<SpinLoop>& loops) const {
        Share all;
        std::set<Function> of_yields;
        for (const auto& loop : loops) {
            const auto function = function_of(place_of(loop));
            const auto part = part_of_function(loop, loops);
            const auto own = time_.share([&](const TimeSection::Entry& e) {
                return function_of(p().at(e.frames.front())) == function;
            });
            add(all, {own.share * part, own.low * part, own.high * part});
            if (loop.yields && of_yields.insert(function).second)
                add(all, time_.share([&](const TimeSection::Entry& e) {
                    return e.frames.size() > 1 && e.call == "sched_yield" &&
                           function_of(p().at(e.frames[1])) == function;
                }));
        }
        return all;
    }
    static void add(Share& sum, const Share& more) {
        sum = {sum.share + more.share, sum.low + more.low, std::min(1.0, sum.high + more.high)};
    }

    // Places of the user's code that called into the library, with what was spent below them.
    std::vector<std::pair<LocationIndex, Statistics>> users_of(
        const std::vector<SpinLoop>& loops) const {
        std::set<Function> functions;
        for (const auto& loop : loops) functions.insert(function_of(place_of(loop)));
        std::map<LocationIndex, Statistics> places;
        time_.each([&](const TimeSection::Entry& e) {
            if (!functions.contains(function_of(p().at(e.frames.front())))) return;
            for (std::size_t i = 1; i < e.frames.size(); ++i)
                if (!is_library(p().at(e.frames[i])) && users_frame(p().at(e.frames[i]))) {
                    places[e.frames[i]].merge(e.statistics);
                    return;
                }
        });
        std::vector<std::pair<LocationIndex, Statistics>> sorted(places.begin(), places.end());
        std::ranges::stable_sort(sorted, std::ranges::greater{},
                                 [](const auto& place) { return place.second.count; });
        return sorted;
    }

    std::string what_it_reads(const SpinLoop& loop) const {
        const auto& l = place_of(loop);
        if (loop.address) {
            const auto& m = p().modules[l.module];
            const auto variable = symbols_.function_at({m.path, m.build_id}, *loop.address);
            if (variable && !variable->name.empty()) return variable->name;
        }
        return loop.reads;
    }

    Finding finding_of(const std::vector<SpinLoop>& loops) const {
        const auto& most = loops.front();
        Finding f;
        f.location = most.back->to;
        f.where = users_label(p(), place_of(most));
        std::uint64_t rounds = 0;
        for (const auto& loop : loops) {
            rounds += loop.back->statistics.count;
            f.explains.insert(f.explains.end(), loop.looks.begin(), loop.looks.end());
        }
        if (is_library(place_of(most))) {
            f.concerns_user = true;
            const auto name = file_name(p().modules[place_of(most).module].path);
            f.what = fmt::format("threads wait in {} of {}", loops.size() == 1 ? "a loop" : "loops",
                                 name);
            tell_users(f, loops);
        } else {
            f.what =
                fmt::format("waits in a loop that reads {} until it changes{}", what_it_reads(most),
                            most.yields   ? ", and yields the processor"
                            : most.pauses ? ""
                                          : ", without a pause");
        }
        f.evidence.push_back(counted("round", rounds));
        if (time_.is_known()) {
            f.bounds = time_of(loops);
            f.touches = f.bounds->share;
            f.is_by_clock = true;
        } else {
            double work = 0;
            for (const auto& loop : loops)
                work += real(loop.back->statistics.count) * loop.instructions;
            f.touches = e_.share_of_instructions(work);
        }
        return f;
    }

    void tell_users(Finding& f, const std::vector<SpinLoop>& loops) const {
        constexpr std::size_t told = 3;
        if (!time_.is_known()) return;
        const auto users = users_of(loops);
        if (users.empty()) return;
        f.location = users.front().first;
        f.where = users_label(p(), p().at(f.location));
        for (std::size_t i = 0; i < std::min(told, users.size()); ++i)
            f.evidence.push_back(fmt::format("{} of the time below {}",
                                             ratio_text(time_.share_of_sum(users[i].second)),
                                             users_label(p(), p().at(users[i].first))));
    }

    const Evidence& e_;
    Symbols& symbols_;
    StackTime time_;
};

}  // namespace

std::vector<Finding> find_spin_waits(const Evidence& e, Symbols& symbols) {
    return SpinFinder(e, symbols).find();
}

}  // namespace shadowprof::report
