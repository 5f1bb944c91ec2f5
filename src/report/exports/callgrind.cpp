// The format of Valgrind's Callgrind (its manual, "Callgrind Format Specification"): costs by
// object, file, function and line, and calls with their costs.
//
// Time is in the clock's stacks, which have the lines of calls. Of instructions it is known by the
// calls on which lines a function calls another, and by the callers what that costs: it is divided
// by the number of calls.
//
// No call may be told of as none: readers take the line that follows for a cost of the caller
// itself. Calls from before profiling began were not seen, and of time no calls are known at all.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/utf8.h"
#include "report/exports/exports.h"
#include "report/exports/weighted_stacks.h"
#include "report/text/format.h"
#include "report/views/contexts.h"

namespace shadowprof::report {

namespace {

struct CallgrindFunction {
    std::string object, file, name;
    auto operator<=>(const CallgrindFunction&) const = default;
};

// "(12)" would stand for the name with that number.
std::string name(const std::string& text) {
    const bool is_number = text.size() > 1 && text[0] == '(' && text[1] >= '0' && text[1] <= '9';
    return (is_number ? "_" : "") + printable(text);
}

// The file: functions by number, what each costs by line, and whom it calls.
class CallgrindFile {
  public:
    struct Calls {
        std::uint64_t count = 0, cost = 0;
    };
    using Arc = std::map<std::uint32_t, Calls>;  // by line of the caller

    explicit CallgrindFile(const Profile& p) : p_(p) {
        for (LocationIndex i = 0; i < p.locations.size(); ++i)
            if (auto file = frames_of(p, i).front().file; !file.empty())
                files_.try_emplace(function_key(p.at(i)), std::move(file));
    }

    // The function that the code is in. Functions expanded in place belong to it.
    std::size_t function_at(LocationIndex i) {
        const auto& l = p_.at(i);
        const auto file = files_.find(function_key(l));
        return number_of({name(p_.modules[l.module].path),
                          file == files_.end() ? "???" : name(file->second),
                          name(frames_of(p_, i).front().function)});
    }
    // What stands for functions. Where a function has callers, and others of it are not known,
    // these are one: readers that add up the calls of it would otherwise miss what it costs there.
    std::size_t function_called(std::string_view name) {
        return number_of({"???", "???", std::string(name)});
    }
    std::size_t function_of(const StackFrame& frame) {
        return frame.location ? function_at(*frame.location) : function_called(frame.function);
    }
    const std::string& name_of(std::size_t function) const { return names_[function]->name; }

    void add_cost(std::size_t function, std::uint32_t line, std::uint64_t cost) {
        lines_[function][line] += cost;
        total_ += cost;
    }
    Arc& arc(std::size_t caller, std::size_t callee) { return arcs_[{caller, callee}]; }

    std::string text(std::string_view events) const {
        std::string out;
        auto to = std::back_inserter(out);
        fmt::format_to(to, "# callgrind format\nversion: 1\ncreator: {}\n", printable(p_.tool));
        for (const auto& t : p_.targets)
            fmt::format_to(to, "cmd: {}\n",
                           printable(fmt::format("{}", fmt::join(t.command, " "))));
        fmt::format_to(to, "positions: line\n{}\nsummary: {}\n", events, total_);
        for (std::size_t f = 0; f < names_.size(); ++f) {
            const auto& function = *names_[f];
            fmt::format_to(to, "\nob={}\nfl={}\nfn={}\n", function.object, function.file,
                           function.name);
            for (const auto& [line, cost] : lines_[f]) fmt::format_to(to, "{} {}\n", line, cost);
            for (auto at = arcs_.lower_bound({f, 0}); at != arcs_.end() && at->first.first == f;
                 ++at)
                write_calls(out, *names_[at->first.second], at->second);
        }
        fmt::format_to(to, "\ntotals: {}\n", total_);
        return out;
    }

  private:
    std::size_t number_of(CallgrindFunction function) {
        const auto [known, is_new] = functions_.try_emplace(std::move(function), names_.size());
        if (is_new) {
            names_.push_back(&known->first);
            lines_.emplace_back();
        }
        return known->second;
    }
    static void write_calls(std::string& out, const CallgrindFunction& callee, const Arc& arc) {
        for (const auto& [line, calls] : arc)
            fmt::format_to(std::back_inserter(out), "cob={}\ncfi={}\ncfn={}\ncalls={} 0\n{} {}\n",
                           callee.object, callee.file, callee.name,
                           std::max<std::uint64_t>(calls.count, 1), line, calls.cost);
    }

    const Profile& p_;
    std::map<FunctionKey, std::string> files_;  // as far as they are known
    std::map<CallgrindFunction, std::size_t> functions_;
    std::vector<const CallgrindFunction*> names_;
    std::vector<std::map<std::uint32_t, std::uint64_t>> lines_;
    std::map<std::pair<std::size_t, std::size_t>, Arc> arcs_;  // caller and callee
    std::uint64_t total_ = 0;
};

// --- time

class TimeCosts {
  public:
    explicit TimeCosts(const Profile& p) : file_(p) {
        for (const auto& stack : stacks_of_time(p)) add(stack);
        for (auto& stack : stacks_)
            if (are_called_.contains(stack.functions.front())) {
                stack.functions.insert(stack.functions.begin(),
                                       file_.function_called(unknown_callers_frame));
                stack.lines.insert(stack.lines.begin(), 0);
            }
        for (const auto& stack : stacks_) count(stack);
    }
    std::string text() const {
        return file_.text("event: ns : time on processors, in nanoseconds\nevents: ns");
    }

  private:
    struct Stack {
        std::vector<std::size_t> functions;  // outermost first
        std::vector<std::uint32_t> lines;    // where each calls the next
        std::uint64_t nanoseconds = 0;
    };

    void add(const WeightedStack& from) {
        auto& stack = stacks_.emplace_back();
        stack.nanoseconds = from.weight;
        const StackFrame* before = nullptr;
        for (const auto& frame : from.frames) {
            // The first of a place is the function itself; others were expanded in it.
            if (before && before->location && before->location == frame.location) continue;
            before = &frame;
            stack.functions.push_back(file_.function_of(frame));
            stack.lines.push_back(frame.line);
            if (stack.functions.size() > 1) are_called_.insert(stack.functions.back());
        }
    }

    // What is in a function that calls itself again counts once.
    void count(const Stack& stack) {
        file_.add_cost(stack.functions.back(), stack.lines.back(), stack.nanoseconds);
        std::set<std::size_t> seen{stack.functions.front()};
        for (std::size_t n = 1; n < stack.functions.size(); ++n) {
            auto& calls = file_.arc(stack.functions[n - 1], stack.functions[n])[stack.lines[n - 1]];
            if (seen.insert(stack.functions[n]).second) calls.cost += stack.nanoseconds;
        }
    }

    CallgrindFile file_;
    std::vector<Stack> stacks_;
    std::set<std::size_t> are_called_;
};

// --- instructions

class InstructionCosts {
  public:
    explicit InstructionCosts(const Profile& p) : p_(p), file_(p) {
        const auto executed = executed_instructions(p);
        if (executed.empty())
            throw UserError("nothing to export: profile with -p path or -p method");
        for (const auto& stack : executed)
            file_.add_cost(file_.function_of(stack.frames.front()), stack.frames.front().line,
                           stack.weight);
        if (p.find<CallerSection>()) collect_calls();
    }
    std::string text() const { return file_.text("events: Ir"); }

  private:
    struct OfPair {
        CallgrindFile::Calls all;
        std::uint32_t line = 0;                        // of the caller
        std::map<std::uint32_t, std::uint64_t> lines;  // calls, as far as it is known where
    };

    void collect_calls() {
        std::map<std::size_t, CallgrindFile::Calls> in_all, by_callers;
        for (const auto& e : p_.find<CallerSection>()->entries) {
            const auto callee = file_.function_at(e.function);
            if (!e.caller) {
                in_all[callee].count += e.calls;
                in_all[callee].cost += e.inclusive.count;
                continue;
            }
            const auto caller = file_.function_at(*e.caller);
            auto& pair = pairs_[{caller, callee}];
            pair.all.count += e.calls;
            pair.line = frames_of(p_, *e.caller).front().line;
            // What recursion costs is in the calls from outside.
            if (caller == callee) continue;
            pair.all.cost += e.inclusive.count;
            by_callers[callee].count += e.calls;
            by_callers[callee].cost += e.inclusive.count;
        }
        find_lines();
        for (auto& [functions, pair] : pairs_)
            divide(pair, file_.arc(functions.first, functions.second));
        for (const auto& [function, known] : by_callers) {
            const auto& all = in_all[function];
            if (all.cost > known.cost)
                file_.arc(file_.function_called(unknown_callers_frame), function)[0] = {
                    all.count - std::min(all.count, known.count), all.cost - known.cost};
        }
    }

    // Calls of a stub are calls of the function that it jumps on to.
    void find_lines() {
        const auto* calls = p_.find<CallSection>();
        if (!calls) return;
        std::map<std::pair<std::size_t, std::string>, OfPair*> by_name;
        for (auto& [functions, pair] : pairs_)
            by_name[{functions.first, file_.name_of(functions.second)}] = &pair;
        for (const auto& e : calls->entries) {
            auto callee = file_.name_of(file_.function_at(e.to));
            callee.resize(std::min(callee.find("@plt"), callee.size()));
            if (const auto pair = by_name.find({file_.function_at(e.from), std::move(callee)});
                pair != by_name.end() && e.statistics.count > 0)
                pair->second->lines[frames_of(p_, e.from).front().line] += e.statistics.count;
        }
    }

    static void divide(OfPair& pair, CallgrindFile::Arc& arc) {
        if (pair.lines.empty()) pair.lines[pair.line] = 1;
        std::uint64_t known = 0;
        for (const auto& [line, calls] : pair.lines) known += calls;
        CallgrindFile::Calls given;
        Wide before = 0;
        for (const auto& [line, calls] : pair.lines) {
            before += calls;
            const auto part = [&](std::uint64_t whole, std::uint64_t& given_of_it) {
                const auto until = static_cast<std::uint64_t>(before * whole / known);
                return until - std::exchange(given_of_it, until);
            };
            arc[line] = {part(pair.all.count, given.count), part(pair.all.cost, given.cost)};
        }
    }

    const Profile& p_;
    CallgrindFile file_;
    std::map<std::pair<std::size_t, std::size_t>, OfPair> pairs_;  // caller and callee
};

}  // namespace

Exported export_callgrind(const Profile& p, const ExportOptions& options) {
    const auto weight = weight_for(p, options.weight);
    if (weight == Weight::time) {
        if (!has_time(p)) nothing_to_export(p, weight);
        return {TimeCosts(p).text(),
                {"the clock counts no calls: from each line that calls a function there is one"}};
    }
    if (!options.weight && p.find<TimeSection>() && executed_instructions(p).empty())
        nothing_to_export(p, Weight::time);
    Exported out{InstructionCosts(p).text(), {}};
    if (!p.find<CallerSection>())
        out.notes.emplace_back("there are no calls in it: profile with -p context");
    return out;
}

}  // namespace shadowprof::report
