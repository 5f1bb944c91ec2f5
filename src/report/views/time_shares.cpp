#include "report/views/time_shares.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "model/utf8.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

using profile::ThreadState;

// Code that was made at run time and has no name is one function.
using FunctionKey = std::tuple<ModuleIndex, bool, std::uint64_t, std::string>;

bool is_runtime_code(const Profile& p, const Location& l) {
    return p.modules[l.module].path == "[runtime code]";
}

FunctionKey function_of(const Profile& p, const Location& l) {
    if (is_runtime_code(p, l)) return {l.module, false, 0, l.function};
    return {l.module, true, l.function_offset.value_or(l.offset), {}};
}

std::string label_of(const Profile& p, const Location& l) {
    if (is_runtime_code(p, l) && l.function.empty()) return "(code made at run time)";
    return function_label(p, l);
}

template <class Items, class Amount>
void sort_by(Items& items, Amount amount) {
    std::stable_sort(items.begin(), items.end(),
                     [&](const auto& a, const auto& b) { return amount(a) > amount(b); });
}

std::uint64_t sum_of(const std::vector<WaitingTime>& waiting) {
    std::uint64_t sum = 0;
    for (const auto& w : waiting) sum += w.nanoseconds;
    return sum;
}

using Waits = std::map<ThreadState, WaitingTime>;

void add_wait(Waits& waits, const TimeSection::Entry& e) {
    auto& wait = waits[e.state];
    const bool is_new = wait.nanoseconds == 0;
    wait.state = e.state;
    wait.nanoseconds += e.waiting.count;
    if (is_new)
        wait.call = e.call;
    else if (wait.call != e.call)
        wait.call.clear();
}

std::vector<WaitingTime> longest_first(const Waits& waits) {
    std::vector<WaitingTime> list;
    for (const auto& [state, wait] : waits) list.push_back(wait);
    sort_by(list, [](const auto& w) { return w.nanoseconds; });
    return list;
}

}  // namespace

std::uint64_t ThreadTime::waited() const {
    return sum_of(waiting);
}

TimeShares time_shares(const Profile& p, const TimeSection& time) {
    TimeShares shares;
    std::map<FunctionKey, FunctionTime> functions;
    std::map<std::string, Statistics> calls;
    std::map<std::string, ThreadTime> threads;
    std::map<std::string, Waits> waits_of_thread;
    Waits waits;
    for (const auto& e : time.entries) {
        auto& thread = threads[e.thread];
        if (profile::is_waiting(e.state)) {
            add_wait(waits, e);
            add_wait(waits_of_thread[e.thread], e);
            continue;
        }
        const bool in_kernel = e.state == ThreadState::kernel;
        thread.on_processor.merge(e.statistics);
        if (in_kernel) thread.in_kernel.merge(e.statistics);
        (in_kernel ? shares.kernel : shares.user).merge(e.statistics);
        if (in_kernel) calls[e.call].merge(e.statistics);
        std::set<FunctionKey> seen;
        for (std::size_t n = 0; n < e.frames.size(); ++n) {
            const auto& l = p.at(e.frames[n]);
            const auto key = function_of(p, l);
            auto& function = functions[key];
            if (function.function.empty()) {
                function.function = label_of(p, l);
                function.where = file_name(p.modules[l.module].path);
            }
            if (n == 0) {
                function.self.merge(e.statistics);
                if (in_kernel) function.in_kernel.merge(e.statistics);
                if (!l.file.empty()) function.where = place_label(p, l);
            }
            if (seen.insert(key).second) function.with_callees.merge(e.statistics);
        }
    }
    for (auto& [key, function] : functions) shares.functions.push_back(std::move(function));
    sort_by(shares.functions,
            [](const auto& f) { return std::pair(f.self.count, f.with_callees.count); });
    for (auto& call : calls) shares.calls.push_back(std::move(call));
    sort_by(shares.calls, [](const auto& c) { return c.second.count; });
    for (auto& [name, thread] : threads) {
        thread.name = name;
        thread.waiting = longest_first(waits_of_thread[name]);
        shares.threads.push_back(std::move(thread));
    }
    sort_by(shares.threads,
            [](const auto& t) { return std::pair(t.on_processor.count, t.waited()); });
    shares.waiting = longest_first(waits);
    return shares;
}

std::string waiting_text(const std::vector<WaitingTime>& waiting) {
    constexpr std::uint64_t part_that_counts = 100;
    const auto all = sum_of(waiting);
    std::string text;
    for (const auto& w : waiting) {
        if (w.nanoseconds < all / part_that_counts) continue;
        if (!text.empty()) text += ", ";
        text += name_of(w.state);
        if (!w.call.empty()) text += " (" + printable(w.call) + ")";
        text += " " + seconds_text(static_cast<double>(w.nanoseconds) * 1e-9);
    }
    return text;
}

}  // namespace shadowprof::report
