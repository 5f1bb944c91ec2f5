#include "report/text/text_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "model/utf8.h"
#include "profile/registry.h"
#include "report/model/steps.h"
#include "report/opportunities/opportunities.h"
#include "report/text/format.h"
#include "report/text/latency_notes.h"
#include "report/text/listing.h"
#include "report/text/shown_table.h"
#include "report/text/text_table.h"
#include "report/text/time_chapter.h"
#include "report/text/value_notes.h"
#include "report/views/certainty.h"
#include "report/views/shares.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t narrowest = 40;
constexpr std::size_t label_columns = 11;
constexpr std::size_t most_path_lines = 5;

std::string joined(const std::vector<std::string>& items, const char* between) {
    return fmt::format("{}", fmt::join(items, between));
}

class TextReport {
  public:
    TextReport(const Profile& profile, const TextOptions& options)
        : p_(profile),
          top_(options.top),
          anyway_(options.anyway),
          all_code_(options.all_code),
          width_(options.width),
          paint_(options.color),
          symbols_(options.symbols) {}

    std::string render() {
        shortage();
        header();
        out_ += time_chapter(p_, top_, width_, paint_);
        if (!anyway_ && certainty_of(p_).is_noise()) {
            certain();
            return std::move(out_);
        }
        opportunities();
        if (p_.find<MethodSection>()) functions(*p_.find<MethodSection>());
        if (p_.find<PathSection>()) paths(*p_.find<PathSection>());
        if (p_.find<EdgeSection>()) edges(*p_.find<EdgeSection>());
        if (p_.find<CallSection>()) calls(*p_.find<CallSection>());
        if (p_.find<ValueSection>()) values(*p_.find<ValueSection>());
        if (p_.find<LatencySection>()) latencies(*p_.find<LatencySection>());
        if (p_.find<StackSection>()) stacks(*p_.find<StackSection>());
        tables();
        return std::move(out_);
    }

  private:
    // --- profile types that have no chapter here

    void tables() {
        for (const auto* type : profile::profile_types()) {
            const auto* section = type->table ? p_.sections.find(type->section.key) : nullptr;
            if (!section) continue;
            const auto table = type->table(*section);
            title(table.title,
                  fmt::format("{}: {}", table.explanation, count_text(table.totals.total)),
                  table.totals);
            out_ += text_of(table, top_, width_, paint_);
        }
    }

    // --- whether there is anything to say

    void shortage() {
        auto text = shortage_text(p_);
        if (text.empty()) return;
        text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
        line_of(text, Tint::bold, 0);
        for (const auto& remedy : remedies_for(p_)) line_of("→ " + remedy, Tint::accent, 2);
        out_ += "\n";
    }

    // In place of tables, all of whose shares would be noise.
    void certain() {
        const auto facts = certain_facts(p_);
        heading("Certain", "(in spite of so few samples)");
        for (const auto& fact : facts) line_of(fact, Tint::none, 2);
        if (facts.empty()) line_of("nothing that could be told in shares", Tint::dim, 2);
        line_of("tables would be noise and are left out: --anyway shows them", Tint::dim, 2);
    }

    // --- what ran, what was seen, what it cost

    void header() {
        for (const auto& t : p_.targets) {
            fact("Program", joined(t.command, " "), Tint::bold);
            fact("", target_text(t));
        }
        const auto& run = p_.run;
        fact("Run", fmt::format("mode {}, {}; {}; {}", run.mode, joined(run.profiles, " "),
                                run.started, p_.tool));
        if (!run.seeds.empty())
            fact("Merged", fmt::format("{} on {}", counted("run", run.runs()),
                                       counted("machine", p_.hosts.size())));
        fact("Machine", fmt::format("{}, {}, Linux {}", p_.host.cpu, counted("core", p_.host.cores),
                                    p_.host.kernel));
        fact("Seen", seen_text());
        fact("Weighted", weights_text(p_));
        fact("Ended", ended_text());
        if (run.sampling) fact("Samples", *run.sampling);
        fact("Cost", cost_text());
        if (run.interrupted)
            fact("Cut short", "by " + *run.interrupted + ": what was seen until then",
                 Tint::accent);
        for (const auto& w : run.warnings) fact("Warning", w, Tint::accent);
        for (const auto& f : run.failures) fact("Failed", f, Tint::accent);
    }

    void fact(const std::string& label, const std::string& text, Tint tint = Tint::none) {
        if (text.empty()) return;
        auto lines = wrap_words(printable(text), label_columns, width_);
        lines.pop_back();
        out_ += paint_.dim(pad_right(label, label_columns));
        out_ += tint == Tint::bold     ? paint_.bold(lines)
                : tint == Tint::accent ? paint_.accent(lines)
                                       : lines;
        out_ += "\n";
    }

    std::string target_text(const Target& t) const {
        // Each of several merged runs had a process id of its own.
        std::string text = t.pid == 0   ? (t.attached ? "attached to" : "started by shadowprof")
                           : t.attached ? fmt::format("attached to pid {}", t.pid)
                                        : fmt::format("pid {}", t.pid);
        if (!t.exit && t.pid == 0)
            text += ", with different ends";
        else if (!t.exit)
            text += ", still running when profiling ended";
        else if (*t.exit > 128 && *t.exit <= 128 + 64)
            text += fmt::format(", killed by signal {}", *t.exit - 128);
        else
            text += fmt::format(", exit status {}", *t.exit);
        return text + ", " + seconds_text(p_.run.duration);
    }

    std::string seen_text() const {
        const auto& c = p_.coverage;
        return fmt::format("{}{} in {}, {}", saw_everything(p_) ? "everything: " : "",
                           counted("instruction", c.instructions), counted("block", c.blocks),
                           counted("sample", c.samples));
    }

    std::string ended_text() const {
        std::vector<std::pair<std::uint64_t, std::string>> reasons;
        for (const auto& [reason, n] : p_.coverage.ended) reasons.emplace_back(n, reason);
        std::stable_sort(reasons.begin(), reasons.end(),
                         [](const auto& a, const auto& b) { return a.first > b.first; });
        std::string text;
        constexpr std::size_t most = 8;
        for (std::size_t i = 0; i < std::min(reasons.size(), most); ++i)
            text += fmt::format("{}{} × {}", i ? ", " : "", count_text(reasons[i].first),
                                reasons[i].second);
        if (reasons.size() > most) text += fmt::format(", {} more reasons", reasons.size() - most);
        return text;
    }

    std::string cost_text() const {
        const auto& c = p_.cost;
        std::string text = counted("stop", c.stops) + ", " + seconds_text(c.stop_time) + " stopped";
        if (c.forks) text += fmt::format(", {}", counted("fork", c.forks));
        if (c.extra_faults) text += fmt::format(", {}", counted("extra fault", c.extra_faults));
        if (c.extra_cpu > 0) text += ", " + seconds_text(c.extra_cpu) + " extra CPU";
        if (c.slowdown) text += ", slowdown " + share_text(*c.slowdown);
        return text;
    }

    // --- what to do about it

    void opportunities() {
        const auto findings =
            find_opportunities(p_, symbols_, all_code_ ? Code::all : Code::of_the_user);
        heading("Opportunities",
                all_code_
                    ? "(by the share of instructions, or of waiting time, that they touch)"
                    : "(by the share of instructions, or of waiting time, that they touch; not in "
                      "libraries of the system: --all-code)");
        if (!weighted_instructions(p_))
            line_of(unknown_total_text, Tint::dim, 2);
        else if (certainty_of(p_).is_noise())
            line_of("none can be founded on so few samples", Tint::dim, 2);
        else if (findings.empty())
            line_of("none that touches " + share_text(thresholds::least_touched) +
                        " of the work or more",
                    Tint::dim, 2);
        std::set<const FindingKind*> advised;  // each advice is given once
        for (std::size_t i = 0; i < rows(findings); ++i)
            opportunity(findings[i], advised.insert(findings[i].kind).second);
        if (findings.size() > top_)
            line_of(fmt::format("and {} more", findings.size() - top_), Tint::dim, 2);
    }

    void opportunity(const Finding& f, bool with_advice) {
        const auto share = pad_left(share_text(f.touches), 7);
        const auto interval = f.interval.empty() ? "" : "  " + f.interval;
        const auto kind = " [" + std::string(f.kind->name) + "]";
        const auto used = columns_of(share + interval + kind) + 4;
        const auto title = shorten_end(f.kind->title, width_ - std::min(width_, used));
        out_ += "  " + paint_.heat(f.touches, share) + paint_.dim(interval) + "  " +
                paint_.bold(title) + paint_.dim(kind) + "\n";
        line_of(full_label(p_, p_.at(f.location)) + ": " + f.what, Tint::none);
        for (const auto& e : f.evidence) line_of(e, Tint::dim);
        if (with_advice) line_of("→ " + std::string(f.kind->advice), Tint::accent);
    }

    void line_of(const std::string& text, Tint tint, std::size_t indent = 6) {
        auto lines =
            std::string(indent, ' ') + wrap_words(printable(text), indent + 2, width_ - indent);
        lines.pop_back();
        out_ += (tint == Tint::dim      ? paint_.dim(lines)
                 : tint == Tint::bold   ? paint_.bold(lines)
                 : tint == Tint::accent ? paint_.accent(lines)
                                        : lines) +
                "\n";
    }

    // --- hotlists

    void title(const std::string& text, const std::string& explanation, const Totals& totals) {
        std::string rest = explanation;
        if (totals.unknown)
            rest += "; " +
                    share_text(fraction(static_cast<double>(totals.unknown),
                                        static_cast<double>(totals.total))) +
                    " in none of the entries";
        heading(text, "(" + rest + ")");
    }

    void heading(const std::string& text, const std::string& explanation) {
        auto lines = wrap_words(explanation, 2, width_ - std::min(width_, text.size() + 1));
        lines.pop_back();
        out_ += "\n" + paint_.bold(text) + " " + paint_.dim(lines) + "\n";
    }

    template <class Entry>
    std::size_t rows(const std::vector<Entry>& entries) const {
        return std::min(entries.size(), top_);
    }

    void put(const TextTable& table) {
        out_ +=
            table.empty() ? "  " + paint_.dim("none seen") + "\n" : table.render(width_, paint_);
    }

    static Cell share_cell(const ShareTexts& share) {
        return {share.text, Tint::heat, share.share};
    }
    static Cell dim(std::string text) { return {std::move(text), Tint::dim}; }

    void functions(const MethodSection& list) {
        title("Hot functions", "by instructions: " + count_text(list.instructions.total),
              list.instructions);
        std::vector<const MethodEntry*> order;
        for (const auto& e : list.entries)
            if (e.instructions.count + e.statistics.count > 0) order.push_back(&e);
        std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
            return a->instructions.count > b->instructions.count;
        });
        TextTable table({{"share"},
                         {"interval", Column::Align::right, 3},
                         {"instructions", Column::Align::right, 4},
                         {"calls", Column::Align::right, 6},
                         {"tail calls", Column::Align::right, 1},
                         {"loops", Column::Align::right, 5},
                         {"function", Column::Align::left, 9, 3},
                         {"where", Column::Align::left, 7, 2}});
        for (std::size_t i = 0; i < rows(order); ++i) {
            const auto& e = *order[i];
            const auto& at = p_.at(e.function);
            const auto share = share_texts(e.instructions, list.instructions);
            table.add({share_cell(share),
                       dim(share.interval),
                       {count_text(e.instructions.count)},
                       {count_text(e.calls)},
                       {e.tail_calls ? count_text(e.tail_calls) : ""},
                       {count_text(e.back_edges)},
                       {function_label(p_, at), Tint::bold},
                       dim(at.file.empty() ? file_name(p_.modules[at.module].path)
                                           : place_label(p_, at))});
        }
        put(table);
    }

    void paths(const PathSection& list) {
        title("Hot paths", count_text(list.totals.total) + " executions of paths", list.totals);
        if (list.entries.empty()) out_ += "  " + paint_.dim("none seen") + "\n";
        for (std::size_t i = 0; i < rows(list.entries); ++i) path(list.entries[i], list.totals);
    }

    void path(const PathEntry& e, const Totals& totals) {
        const auto share = share_texts(e.statistics, totals);
        const auto length = e.instructions();
        std::string line = count_text(e.statistics.count) + " × " + counted("instruction", length);
        if (const auto work = work_of(e, p_))
            line += fmt::format(", {} of all instructions", share_text(*work));
        const auto interval = share.interval.empty() ? "" : "  " + share.interval;
        const auto room = width_ - std::min(width_, columns_of(share.text + interval) + 6);
        out_ += "  " + paint_.heat(share.share, pad_left(share.text, 7)) + paint_.dim(interval) +
                "  " + paint_.dim(shorten_end(line, room)) + "\n";
        out_ += wrap_steps(path_steps(p_, e), 6, width_, most_path_lines);
    }

    void edges(const EdgeSection& list) {
        title("Hot edges", count_text(list.totals.total) + " executions of edges", list.totals);
        TextTable table({{"share"},
                         {"interval", Column::Align::right, 3},
                         {"count", Column::Align::right, 5},
                         {"kind", Column::Align::left, 6},
                         {"from", Column::Align::left, 9, 1},
                         {"to", Column::Align::left, 9, 1}});
        for (std::size_t i = 0; i < rows(list.entries); ++i) {
            const auto& e = list.entries[i];
            const auto share = share_texts(e.statistics, list.totals);
            auto labels = edge_labels(p_, p_.at(e.from), p_.at(e.to));
            table.add({share_cell(share),
                       dim(share.interval),
                       {count_text(e.statistics.count)},
                       {std::string(name_of(e.kind))},
                       {std::move(labels.from)},
                       {std::move(labels.to)}});
        }
        put(table);
    }

    void calls(const CallSection& list) {
        title("Hot calls", count_text(list.totals.total) + " calls", list.totals);
        TextTable table({{"share"},
                         {"interval", Column::Align::right, 3},
                         {"count", Column::Align::right, 5},
                         {"from", Column::Align::left, 9, 1},
                         {"to", Column::Align::left, 9, 1}});
        for (std::size_t i = 0; i < rows(list.entries); ++i) {
            const auto& e = list.entries[i];
            const auto share = share_texts(e.statistics, list.totals);
            table.add({share_cell(share),
                       dim(share.interval),
                       {count_text(e.statistics.count)},
                       {full_label(p_, p_.at(e.from))},
                       {function_label(p_, p_.at(e.to)), Tint::bold}});
        }
        put(table);
    }

    void values(const ValueSection& list) {
        struct Row {
            const ValueEntry* entry;
            Regularity regularity;
            double weight;  // executions that see the regular value
        };
        std::vector<Row> found;
        for (const auto& e : list.entries) {
            if (is_constant_by_construction(p_, e)) continue;
            auto regularity = regularity_of(p_, e);
            const auto weight = regularity.share * static_cast<double>(e.all_executions());
            if (weight > 0) found.push_back({&e, std::move(regularity), weight});
        }
        std::stable_sort(found.begin(), found.end(),
                         [](const auto& a, const auto& b) { return a.weight > b.weight; });
        title("Predictable values",
              fmt::format("of {}; those that cannot vary are left out",
                          counted("operand", list.entries.size())),
              list.all_executions());
        TextTable table({{"share"},
                         {"interval", Column::Align::right, 7},
                         {"see", Column::Align::left, 9, 3},
                         {"in", Column::Align::left, 8, 2},
                         {"executions", Column::Align::right, 5},
                         {"of", Column::Align::left, 4, 3},
                         {"where", Column::Align::left, 9, 5}});
        for (std::size_t i = 0; i < rows(found); ++i) {
            const auto& [entry, regularity, weight] = found[i];
            const auto& at = p_.at(entry->location);
            auto where = full_label(p_, at);
            if (entry->context) where += " called from " + full_label(p_, p_.at(*entry->context));
            table.add({{share_text(regularity.share), Tint::heat, regularity.share},
                       dim(regularity.interval),
                       {regularity.text, Tint::bold},
                       {operand_label(*entry)},
                       {count_text(entry->all_executions())},
                       dim(printable(at.text)),
                       {where}});
        }
        put(table);
    }

    void latencies(const LatencySection& list) {
        out_ += "\n" + paint_.bold("Loads that wait") + "\n";
        out_ += wrap_words("  " + paint_.dim(scale_text(list.scale)), 2, width_);
        TextTable table({{"waiting"},
                         {"interval", Column::Align::right, 5},
                         {"mean"},
                         {"p50", Column::Align::right, 4},
                         {"p99", Column::Align::right, 4},
                         {"from (model)", Column::Align::left, 7, 3},
                         {"addresses", Column::Align::left, 6, 2},
                         {"loads", Column::Align::right, 3},
                         {"of", Column::Align::left, 4, 3},
                         {"where", Column::Align::left, 9, 4}});
        for (std::size_t i = 0; i < rows(list.entries); ++i) {
            const auto& e = list.entries[i];
            const bool leaves_near_caches = e.by_model[2] + e.by_model[3] > 0;
            if (e.statistics.count == 0 && !leaves_near_caches) continue;
            const auto share = share_texts(e.statistics, list.totals);
            const auto& at = p_.at(e.location);
            const auto time = [&](double ns) { return e.timed ? nanoseconds_text(ns) : ""; };
            table.add({{share.text, Tint::heat, share.share},
                       dim(share.interval),
                       {time(e.mean_ns()), Tint::bold},
                       dim(time(profile::latency_quantile(e.histogram, 0.5))),
                       dim(time(profile::latency_quantile(e.histogram, 0.99))),
                       {levels_text(e)},
                       dim(pattern_text(p_, e)),
                       {count_text(e.loads)},
                       dim(printable(at.text)),
                       {full_label(p_, at)}});
        }
        put(table);
    }

    void stacks(const StackSection& list) {
        title("Stacks", "where samples began, outermost call first", list.totals);
        if (list.entries.empty()) out_ += "  " + paint_.dim("none seen") + "\n";
        for (std::size_t i = 0; i < rows(list.entries); ++i) {
            const auto& e = list.entries[i];
            const auto share = share_texts(e.statistics, list.totals);
            const auto interval = share.interval.empty() ? "" : "  " + share.interval;
            out_ += "  " + paint_.heat(share.share, pad_left(share.text, 7)) +
                    paint_.dim(interval) + "\n";
            out_ += wrap_steps(stack_steps(p_, e), 6, width_, most_path_lines);
        }
    }

    const Profile& p_;
    const std::size_t top_;
    const bool anyway_;
    const bool all_code_;
    const std::size_t width_;
    const Paint paint_;
    Symbols symbols_;
    std::string out_;
};

}  // namespace

std::string render_text(const Profile& profile, const TextOptions& options) {
    TextOptions sane = options;
    sane.width = std::max(sane.width, narrowest);
    if (sane.function) return render_listing(profile, *sane.function, sane);
    return TextReport(profile, sane).render();
}

}  // namespace shadowprof::report
