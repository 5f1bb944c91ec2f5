// The format of Valgrind's Callgrind (its manual, "Callgrind Format Specification"): costs by
// object, file, function and line, and calls with their costs. On which lines a function calls
// another is known by the calls, what that costs by the callers: it is divided by the number of
// calls.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>

#include "base/error.h"
#include "model/utf8.h"
#include "report/exports/exports.h"
#include "report/exports/weighted_stacks.h"
#include "report/text/format.h"

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

class CallgrindWriter {
  public:
    explicit CallgrindWriter(const Profile& p) : p_(p) {}

    std::string write() {
        collect_costs();
        collect_calls();
        std::uint64_t total = 0;
        for (const auto n : own_) total += n;
        auto to = std::back_inserter(out_);
        fmt::format_to(to, "# callgrind format\nversion: 1\ncreator: {}\n", printable(p_.tool));
        for (const auto& t : p_.targets)
            fmt::format_to(to, "cmd: {}\n",
                           printable(fmt::format("{}", fmt::join(t.command, " "))));
        fmt::format_to(to, "positions: line\nevents: Ir\nsummary: {}\n", total);
        for (std::size_t f = 0; f < functions_.size(); ++f) {
            const auto& function = *names_[f];
            fmt::format_to(to, "\nob={}\nfl={}\nfn={}\n", function.object, function.file,
                           function.name);
            for (const auto& [line, cost] : lines_[f]) fmt::format_to(to, "{} {}\n", line, cost);
            for (auto arc = arcs_.lower_bound({f, 0}); arc != arcs_.end() && arc->first.first == f;
                 ++arc)
                write_calls(arc->first.second, arc->second);
        }
        fmt::format_to(to, "\ntotals: {}\n", total);
        return std::move(out_);
    }

  private:
    // The function that the code is in. Functions expanded in place belong to it.
    std::size_t number_of(LocationIndex i) {
        const auto& l = p_.at(i);
        const auto outermost = frames_of(p_, i).front();
        CallgrindFunction f{name(p_.modules[l.module].path),
                            outermost.file.empty() ? "???" : name(outermost.file),
                            name(outermost.function)};
        const auto [known, is_new] = functions_.try_emplace(std::move(f), functions_.size());
        if (is_new) {
            names_.push_back(&known->first);
            own_.push_back(0);
            lines_.emplace_back();
        }
        return known->second;
    }

    void collect_costs() {
        const auto executed = executed_instructions(p_);
        if (executed.empty())
            throw UserError("nothing to export: profile with -p path or -p method");
        for (const auto& stack : executed) {
            const auto f = number_of(*stack.frames.front().location);
            own_[f] += stack.weight;
            lines_[f][stack.frames.front().line] += stack.weight;
        }
    }

    struct Arc {
        std::uint64_t calls = 0, cost = 0;
        std::uint32_t line = 0;                        // of the caller
        std::map<std::uint32_t, std::uint64_t> lines;  // calls, as far as it is known where
    };

    void write_calls(std::size_t callee, Arc& arc) {
        const auto& function = *names_[callee];
        if (arc.lines.empty()) arc.lines[arc.line] = 1;
        std::uint64_t known = 0, calls_given = 0, cost_given = 0;
        for (const auto& [line, calls] : arc.lines) known += calls;
        Wide before = 0;
        for (const auto& [line, calls] : arc.lines) {
            before += calls;
            const auto part = [&](std::uint64_t whole, std::uint64_t& given) {
                return static_cast<std::uint64_t>(before * whole / known) -
                       std::exchange(given, static_cast<std::uint64_t>(before * whole / known));
            };
            const auto calls_here = part(arc.calls, calls_given);
            fmt::format_to(std::back_inserter(out_), "cob={}\ncfi={}\ncfn={}\ncalls={} 0\n{} {}\n",
                           function.object, function.file, function.name, calls_here, line,
                           part(arc.cost, cost_given));
        }
    }

    void collect_calls() {
        const auto* callers = p_.find<CallerSection>();
        if (!callers) return;
        for (const auto& e : callers->entries) {
            if (!e.caller) continue;
            const auto caller = number_of(*e.caller), callee = number_of(e.function);
            auto& arc = arcs_[{caller, callee}];
            arc.calls += e.calls;
            // What recursion costs is in the calls from outside.
            if (caller != callee) arc.cost += e.inclusive.count;
            arc.line = frames_of(p_, *e.caller).front().line;
        }
        const auto* calls = p_.find<CallSection>();
        if (!calls) return;
        // Calls of a stub are calls of the function that it jumps on to.
        std::map<std::pair<std::size_t, std::string>, Arc*> by_name;
        for (auto& [functions, arc] : arcs_)
            by_name[{functions.first, names_[functions.second]->name}] = &arc;
        for (const auto& e : calls->entries) {
            auto callee = names_[number_of(e.to)]->name;
            callee.resize(std::min(callee.find("@plt"), callee.size()));
            if (const auto arc = by_name.find({number_of(e.from), std::move(callee)});
                arc != by_name.end() && e.statistics.count > 0)
                arc->second->lines[frames_of(p_, e.from).front().line] += e.statistics.count;
        }
    }

    const Profile& p_;
    std::string out_;
    std::map<CallgrindFunction, std::size_t> functions_;
    std::vector<const CallgrindFunction*> names_;
    std::vector<std::uint64_t> own_;
    std::vector<std::map<std::uint32_t, std::uint64_t>> lines_;
    std::map<std::pair<std::size_t, std::size_t>, Arc> arcs_;  // caller and callee
};

}  // namespace

Exported export_callgrind(const Profile& p, const ExportOptions&) {
    Exported out{CallgrindWriter(p).write(), {}};
    if (!p.find<CallerSection>())
        out.notes.emplace_back("there are no calls in it: profile with -p context");
    return out;
}

}  // namespace shadowprof::report
