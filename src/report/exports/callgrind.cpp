// The format of Valgrind's Callgrind (its manual, "Callgrind Format Specification"): costs by
// object, file, function and line, and calls with their costs. The cost of a call is an estimate;
// see call_graph.h.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string>
#include <tuple>

#include "base/error.h"
#include "model/utf8.h"
#include "report/exports/call_graph.h"
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
        spread_costs(own_, arcs_);
        std::uint64_t total = 0;
        for (const auto n : own_) total += n;
        auto to = std::back_inserter(out_);
        fmt::format_to(to, "# callgrind format\nversion: 1\ncreator: {}\n", printable(p_.tool));
        for (const auto& t : p_.targets)
            fmt::format_to(to, "cmd: {}\n",
                           printable(fmt::format("{}", fmt::join(t.command, " "))));
        fmt::format_to(to, "positions: line\nevents: Ir\nsummary: {}\n", total);
        std::map<std::size_t, std::vector<std::size_t>> calls_of;
        for (std::size_t i = 0; i < arcs_.size(); ++i) calls_of[arcs_[i].caller].push_back(i);
        for (std::size_t f = 0; f < functions_.size(); ++f) {
            const auto& function = *names_[f];
            fmt::format_to(to, "\nob={}\nfl={}\nfn={}\n", function.object, function.file,
                           function.name);
            for (const auto& [line, cost] : lines_[f]) fmt::format_to(to, "{} {}\n", line, cost);
            for (const auto i : calls_of[f]) {
                const auto& callee = *names_[arcs_[i].callee];
                fmt::format_to(to, "cob={}\ncfi={}\ncfn={}\ncalls={} 0\n{} {}\n", callee.object,
                               callee.file, callee.name, arcs_[i].calls, arc_lines_[i],
                               std::llround(std::min(arcs_[i].cost, 9e18)));
            }
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
            const auto f = number_of(stack.frames.front().location);
            own_[f] += stack.weight;
            lines_[f][stack.frames.front().line] += stack.weight;
        }
    }

    void collect_calls() {
        if (!p_.find<CallSection>()) return;
        std::map<std::tuple<std::size_t, std::size_t, std::uint32_t>, std::uint64_t> calls;
        for (const auto& e : p_.find<CallSection>()->entries)
            calls[{number_of(e.from), number_of(e.to), frames_of(p_, e.from).front().line}] +=
                e.statistics.count;
        for (const auto& [arc, n] : calls) {
            const auto& [caller, callee, line] = arc;
            arcs_.push_back({caller, callee, n, 0});
            arc_lines_.push_back(line);
        }
    }

    const Profile& p_;
    std::string out_;
    std::map<CallgrindFunction, std::size_t> functions_;
    std::vector<const CallgrindFunction*> names_;
    std::vector<std::uint64_t> own_;
    std::vector<std::map<std::uint32_t, std::uint64_t>> lines_;
    std::vector<CallArc> arcs_;
    std::vector<std::uint32_t> arc_lines_;
};

}  // namespace

Exported export_callgrind(const Profile& p, const ExportOptions&) {
    Exported out{CallgrindWriter(p).write(), {}};
    if (p.find<CallSection>())
        out.notes.emplace_back(
            "what calls cost is an estimate: what a function costs is divided among its callers by "
            "the number of calls");
    else
        out.notes.emplace_back("there are no calls in it: profile with -p call");
    return out;
}

}  // namespace shadowprof::report
