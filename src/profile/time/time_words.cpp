#include "profile/time/time_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/number_text.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

namespace {

using model::LocationIndex, model::Profile, model::ShownCell, model::ShownPlace, model::Statistics;

double seconds_of(std::uint64_t nanoseconds) {
    return static_cast<double>(nanoseconds) * 1e-9;
}

// --- added up: each look at a thread is in one entry, so what was seen of several adds up

struct FunctionTime {
    LocationIndex any = 0;  // a place in it
    // Where it was itself, of which the file is known: its beginning, or lines that an interpreter
    // executes.
    std::map<LocationIndex, std::uint64_t> sources;
    Statistics self, with_callees;
    Statistics in_kernel;  // of `self`
};

struct WaitingTime {
    ThreadState state{};
    std::string call;  // empty: several, or none
    std::uint64_t nanoseconds = 0;
};
using WaitingTimes = std::vector<WaitingTime>;  // the longest first, by state

struct ThreadTime {
    std::string name;
    Statistics on_processor, in_kernel;
    WaitingTimes waiting;
};

struct TimeShares {
    Statistics user, kernel;
    std::vector<std::pair<std::string, Statistics>> calls;  // of `kernel`, the longest first
    std::vector<FunctionTime> functions;                    // the most time of its own first
    std::vector<ThreadTime> threads;                        // the most time first
    WaitingTimes waiting;
};

bool is_runtime_code(const Profile& p, const model::Location& l) {
    return p.modules[l.module].path == "[runtime code]";
}

template <class Items, class Amount>
void sort_by(Items& items, Amount amount) {
    std::stable_sort(items.begin(), items.end(),
                     [&](const auto& a, const auto& b) { return amount(a) > amount(b); });
}

std::uint64_t sum_of(const WaitingTimes& waiting) {
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

WaitingTimes longest_first(const Waits& waits) {
    WaitingTimes list;
    for (const auto& [state, wait] : waits) list.push_back(wait);
    sort_by(list, [](const auto& w) { return w.nanoseconds; });
    return list;
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
        if (is_waiting(e.state)) {
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
            auto& function =
                functions.try_emplace(key, FunctionTime{e.frames[n], {}, {}, {}, {}}).first->second;
            if (n == 0) {
                function.self.merge(e.statistics);
                if (in_kernel) function.in_kernel.merge(e.statistics);
                if (!l.file.empty()) function.sources[e.frames[n]] += e.statistics.count;
            }
            if (seen.insert(key).second) function.with_callees.merge(e.statistics);
        }
    }
    for (auto& [key, function] : functions) shares.functions.push_back(function);
    sort_by(shares.functions,
            [](const auto& f) { return std::pair(f.self.count, f.with_callees.count); });
    for (auto& call : calls) shares.calls.emplace_back(call);
    sort_by(shares.calls, [](const auto& c) { return c.second.count; });
    for (auto& [name, thread] : threads) {
        thread.name = name;
        thread.waiting = longest_first(waits_of_thread[name]);
        shares.threads.push_back(std::move(thread));
    }
    sort_by(shares.threads,
            [](const auto& t) { return std::pair(t.on_processor.count, sum_of(t.waiting)); });
    shares.waiting = longest_first(waits);
    return shares;
}

// --- in words

// Mostly it has nothing to do, as threads of a pool.
std::string_view words_for(ThreadState state) {
    return state == ThreadState::wakeup ? "to be woken" : model::name_of(state);
}

// "lock 3.2 s, sleep 1.1 s"; what is less than a hundredth of the rest is left out.
std::string waiting_text(const WaitingTimes& waiting) {
    const auto all = sum_of(waiting);
    std::string text;
    for (const auto& w : waiting) {
        if (w.nanoseconds < all / tuning::least_part_of_waiting) continue;
        if (!text.empty()) text += ", ";
        text += words_for(w.state);
        if (!w.call.empty()) text += " (" + w.call + ")";
        text += " " + model::seconds_text(seconds_of(w.nanoseconds));
    }
    return text;
}

class Chapter {
  public:
    Chapter(const TimeSection& time, const model::ChapterInputs& in)
        : time_(time), in_(in), shares_(time_shares(in.profile, time)) {}

    model::ShownChapter make() {
        model::ShownChapter chapter{.key = "time",
                                    .name = "Time",
                                    .title = "Where time goes",
                                    .explanation = explanation(),
                                    .totals = time_.totals,
                                    .is_of_time = true,
                                    .needs_samples = false};
        // A note says what is not known; here is the rest.
        chapter.totals.total -= std::exchange(chapter.totals.unknown, 0);
        const auto note = [&](std::string text) {
            if (!text.empty()) chapter.notes.push_back(std::move(text));
        };
        if (time_.totals.total > 0) note(split_text());
        note(waits_text());
        if (time_.totals.total == 0 && time_.waiting.total == 0)
            note("nothing was seen: it was too short, or only its children work");
        if (!shares_.functions.empty()) chapter.tables.push_back(functions());
        if (shares_.threads.size() > 1) chapter.tables.push_back(threads());
        return chapter;
    }

  private:
    std::string explanation() const {
        if (time_.totals.total == 0) return "no look met it on a processor";
        // Processes that were not looked at, or not all the time.
        constexpr double more = 1.05;
        const auto all = in_.profile.time_of_processes();
        const auto seen = seconds_of(time_.totals.total);
        return fmt::format("{}{} on processors, by {}", model::seconds_text(seen),
                           all > more * seen ? " of " + model::seconds_text(all) : "",
                           model::counted("look", time_.totals.samples));
    }

    double share_of(const Statistics& part) const {
        return model::estimate_share(part, time_.totals).share;
    }
    std::string share(const Statistics& part) const { return model::share_text(share_of(part)); }
    ShownCell share_if_any(const Statistics& part) const {
        return part.count > 0 ? ShownCell(share_of(part)) : ShownCell();
    }

    std::string split_text() const {
        auto text = "user code " + share(shares_.user) + ", kernel " + share(shares_.kernel);
        std::vector<std::string> calls;
        for (const auto& [name, time] : shares_.calls) {
            if (calls.size() == tuning::most_calls_told || share_of(time) < tuning::part_of_time)
                break;
            calls.push_back((name.empty() ? "calls unknown" : name) + " " + share(time));
        }
        if (!calls.empty()) text += fmt::format(" ({})", fmt::join(calls, ", "));
        if (time_.totals.unknown > 0)
            text +=
                ", not known " + model::share_text(model::fraction(seconds_of(time_.totals.unknown),
                                                                   seconds_of(time_.totals.total)));
        return text;
    }

    // Waiting for a processor by the way is no waiting.
    std::string waits_text() const {
        auto waiting = shares_.waiting;
        std::erase_if(waiting, [&](const auto& w) {
            return seconds_of(w.nanoseconds) < tuning::part_of_time * in_.profile.run.duration;
        });
        if (waiting.empty()) return {};
        auto text = "waiting: " + waiting_text(waiting);
        if (shares_.threads.size() > 1) text += ", all threads together";
        return text;
    }

    template <class Item>
    static std::vector<const Item*> pointers_to(const std::vector<Item>& items) {
        std::vector<const Item*> pointers;
        for (const auto& item : items) pointers.push_back(&item);
        return pointers;
    }

    model::ShownTable functions() const {
        using enum model::ShownColumn::Kind;
        using Column = model::ShownColumn;
        const auto& p = in_.profile;
        model::TableOf<FunctionTime> table("time", pointers_to(shares_.functions), in_,
                                           [](const FunctionTime& f) { return f.self.count; });
        table.share(&FunctionTime::self, time_.totals, "self")
            .column(Column("with_callees", "with callees", ratio),
                    [&](const FunctionTime& f) { return share_of(f.with_callees); })
            .column(Column("in_kernel", "in kernel", ratio).of(5),
                    [&](const FunctionTime& f) { return share_if_any(f.in_kernel); })
            .column(Column("at", "function", function).wide(3).bold(),
                    [&](const FunctionTime& f) { return name_of_function(p, f.any); })
            .column(Column("source", "where", source).of(7).wide(2).dim(),
                    [&](const FunctionTime& f) {
                        const auto most = std::ranges::max_element(
                            f.sources, {}, [](const auto& source) { return source.second; });
                        if (most != f.sources.end()) return ShownCell(ShownPlace{most->first});
                        // Nothing was seen in it itself, but in what it calls.
                        if (is_interpreted(p, p.at(f.any))) return ShownCell(ShownPlace{f.any});
                        return ShownCell(model::file_name(p.modules[p.at(f.any).module].path));
                    });
        return table.take();
    }

    model::ShownTable threads() const {
        using enum model::ShownColumn::Kind;
        using Column = model::ShownColumn;
        model::TableOf<ThreadTime> table("threads", pointers_to(shares_.threads), in_,
                                         [](const ThreadTime& t) { return t.on_processor.count; });
        table
            .column(Column("share", "on processors", model::ShownColumn::Kind::share),
                    [&](const ThreadTime& t) {
                        const auto part = share_of(t.on_processor);
                        return model::Estimate{part, part, part};
                    })
            .column(Column("in_kernel", "in kernel", ratio).of(5),
                    [&](const ThreadTime& t) { return share_if_any(t.in_kernel); })
            .column(Column("thread", "thread").wide(2).bold(),
                    [](const ThreadTime& t) { return t.name; })
            .column(Column("waiting", "waiting").of(7).wide(3).dim(),
                    [](const ThreadTime& t) { return waiting_text(t.waiting); });
        return table.take();
    }

    const TimeSection& time_;
    const model::ChapterInputs& in_;
    const TimeShares shares_;
};

}  // namespace

bool is_interpreted(const Profile& p, const model::Location& l) {
    const auto& path = p.modules[l.module].path;
    return path == "[python]" || path == "[ruby]";
}

FunctionKey function_of(const Profile& p, const model::Location& l) {
    if (is_runtime_code(p, l)) return {l.module, false, 0, l.function};
    return {l.module, true, l.function_offset.value_or(l.offset), {}};
}

ShownCell name_of_function(const Profile& p, LocationIndex place) {
    const auto& l = p.at(place);
    return is_runtime_code(p, l) && l.function.empty() ? ShownCell("(code made at run time)")
                                                       : ShownCell(ShownPlace{place});
}

model::ShownChapter time_chapter(const TimeSection& time, const model::ChapterInputs& in) {
    return Chapter(time, in).make();
}

}  // namespace shadowprof::profile
