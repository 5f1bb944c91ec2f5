#include "report/text/text_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "model/utf8.h"
#include "report/opportunities/opportunities.h"
#include "report/text/chapter_text.h"
#include "report/text/format.h"
#include "report/text/listing.h"
#include "report/text/text_table.h"
#include "report/tuning.h"
#include "report/views/certainty.h"
#include "report/views/chapters.h"
#include "report/views/processes.h"
#include "report/views/shares.h"

namespace shadowprof::report {

using model::shorten_end;

namespace {

constexpr std::size_t narrowest = 40;
constexpr std::size_t label_columns = 11;
constexpr std::size_t most_lines_of_command = 6;  // xargs gives programs 100,000 arguments

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
          time_first_(options.weight != Weight::instructions),
          width_(options.width),
          paint_(options.color),
          symbols_(options.symbols) {}

    std::string render() {
        shortage();
        verdict();
        const auto shown = chapters_of(p_, top_);
        if (time_first_) chapters(shown, false);
        if (!anyway_ && certainty_of(p_).is_noise()) {
            certain();
            if (weighted_instructions(p_)) opportunities();
        } else {
            opportunities();
            chapters(shown, true);
        }
        if (!time_first_) chapters(shown, false);
        about();
        return std::move(out_);
    }

  private:
    void chapters(const std::vector<ShownChapter>& shown, bool that_need_samples) {
        for (auto chapter : shown) {
            if (chapter.needs_samples != that_need_samples) continue;
            if (chapter.is_noise && !anyway_) {
                chapter.tables.clear();
                chapter.notes.push_back("their table would be noise: --anyway shows it");
            }
            out_ += chapter_text(p_, chapter, width_, paint_);
        }
    }

    // --- what ran, how well it is known, and what limits that

    void shortage() {
        auto text = shortage_text(p_);
        if (text.empty()) return;
        text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
        line_of(text, Tint::bold, 0);
        for (const auto& remedy : remedies_for(p_)) line_of("→ " + remedy, Tint::accent, 2);
        out_ += "\n";
    }

    void verdict() {
        for (const auto& t : p_.targets) {
            fact("Program",
                 shorten_end(joined(t.command, " "),
                             most_lines_of_command * (width_ - label_columns)),
                 Tint::bold);
            fact("", target_text(t));
        }
        fact("Known", known_text(p_));
        fact("Cost", cost_in_short());
        processes();
        if (p_.run.interrupted)
            fact("Cut short", "by " + *p_.run.interrupted + ": what was seen until then",
                 Tint::accent);
        for (const auto& w : p_.run.warnings) fact("Warning", w, Tint::accent);
        for (const auto& f : p_.run.failures) fact("Failed", f, Tint::accent);
    }

    // In place of tables, all of whose shares would be noise.
    void certain() {
        const auto facts = certain_facts(p_);
        out_ += heading_text("Certain", "in spite of so few samples", width_, paint_);
        for (const auto& fact : facts) line_of(fact, Tint::none, 2);
        if (facts.empty()) line_of("nothing that could be told in shares", Tint::dim, 2);
        line_of("tables would be noise and are left out: --anyway shows them", Tint::dim, 2);
    }

    // --- how it was come by

    void about() {
        out_ += heading_text("About this profile", "", width_, paint_);
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
    }

    // How the time is spread over them.
    void processes() {
        const auto shown = processes_of(p_);
        fact("Processes", shown.summary);
        std::size_t widest = 0;
        for (const auto& row : shown.rows) widest = std::max(widest, columns_of(row.name));
        for (const auto& row : shown.rows) {
            const auto share = pad_left(share_text(row.share), 7);
            const auto start = std::string(label_columns, ' ') + paint_.heat(row.share, share) +
                               "  " + pad_left(seconds_text(row.cpu), 8) + "  " +
                               paint_.bold(pad_right(row.name, std::min<std::size_t>(widest, 30)));
            out_ += start + "  " +
                    paint_.dim(shorten_end(row.note, width_ > 60 ? width_ - 50 : 10)) + "\n";
        }
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

    // A stake is no small part of a short run. How long a program would have taken that was
    // followed all the time nobody knows.
    std::string cost_in_short() const {
        if (p_.run.is_whole)
            return fmt::format("not known: mode {} makes a program {} times as slow", p_.run.mode,
                               p_.run.mode == "step" ? "hundreds of" : "several");
        if (!p_.cost.slowdown) return {};
        auto text = share_text(*p_.cost.slowdown) + " of its time";
        if (const auto& budget = p_.run.budget; budget && budget->stake > 0)
            text += fmt::format(" (--overhead {:g}% and --stake {:g}ms)", budget->overhead * 100,
                                budget->stake * 1e3);
        return text;
    }

    // The parts of the slowdown, the largest first.
    std::string account_text() const {
        std::vector<std::pair<std::string, double>> parts{p_.cost.parts.begin(),
                                                          p_.cost.parts.end()};
        std::ranges::sort(parts, std::greater{}, &std::pair<std::string, double>::second);
        std::string text;
        for (const auto& [cause, part] : parts)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", cause, share_text(part));
        return text;
    }

    std::string cost_text() const {
        const auto& c = p_.cost;
        if (p_.run.is_whole) return "followed for " + seconds_text(c.stop_time);
        std::string text = counted("stop", c.stops) + ", " + seconds_text(c.stop_time) + " stopped";
        if (c.forks) text += fmt::format(", {}", counted("fork", c.forks));
        if (c.extra_faults) text += fmt::format(", {}", counted("extra fault", c.extra_faults));
        if (c.extra_cpu > 0) text += ", " + seconds_text(c.extra_cpu) + " extra CPU";
        if (c.slowdown) text += ", slowdown " + share_text(*c.slowdown);
        if (!c.parts.empty()) text += ": " + account_text();
        if (const auto sight = sight_of()) text += fmt::format("; sight {:.2g}", *sight);
        return text;
    }

    // The processor time that samples showed, over the time that profiling took.
    std::optional<double> sight_of() const {
        const auto all = weighted_instructions(p_);
        const auto* const time = p_.find<TimeSection>();
        if (!all || *all == 0 || !time || p_.cost.slowdown.value_or(0) <= 0) return {};
        constexpr double nanoseconds = 1e-9;
        const auto seen = static_cast<double>(p_.coverage.instructions) /
                          static_cast<double>(*all) * static_cast<double>(time->totals.total) *
                          nanoseconds;
        constexpr double least = 1e-3, most = 1e3;  // otherwise something is wrong with it
        const auto sight = seen / (*p_.cost.slowdown * p_.run.duration);
        return sight >= least && sight <= most ? std::optional{sight} : std::nullopt;
    }

    // --- what to do about it

    void opportunities() {
        const auto findings =
            find_opportunities(p_, symbols_, all_code_ ? Code::all : Code::of_the_user);
        std::string order = "by the share of instructions, or of the time, that they touch";
        if (!all_code_) order += "; not in libraries of the system: --all-code";
        out_ += heading_text("Opportunities", order, width_, paint_);
        if (!weighted_instructions(p_))
            line_of(unknown_total_text, Tint::dim, 2);
        else if (findings.empty() && certainty_of(p_).is_noise())
            line_of("none can be founded on so few samples", Tint::dim, 2);
        else if (findings.empty())
            line_of("none that is certain to touch " + share_text(tuning::least_touched) +
                        " of the work or more",
                    Tint::dim, 2);
        std::set<const FindingKind*> advised;  // each advice is given once
        for (std::size_t i = 0; i < std::min(findings.size(), top_); ++i)
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
        const auto where = f.where.empty() ? full_label(p_, p_.at(f.location)) : f.where;
        line_of(where + ": " + f.what, Tint::none);
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

    const Profile& p_;
    const std::size_t top_;
    const bool anyway_;
    const bool all_code_;
    const bool time_first_;
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
