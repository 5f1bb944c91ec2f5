#include "report/diff/diff_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/utf8.h"
#include "report/diff/diff_words.h"
#include "report/text/format.h"
#include "report/text/text_table.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t narrowest = 40;
constexpr std::size_t label_columns = 11;

class DiffText {
  public:
    DiffText(const Diff& diff, const DiffTextOptions& options)
        : d_(diff),
          options_(options),
          width_(std::max(options.width, narrowest)),
          paint_(options.color) {}

    std::string render(const GateResult* gate) {
        for (const auto& base : d_.bases) profile("Base", base);
        profile("New", d_.now);
        for (const auto& note : d_.notes) fact("Note", printable(note), Tint::accent);
        if (gate) verdicts(*gate);
        if (d_.instructions) whole("Total", *d_.instructions, Unit::count, "instructions");
        if (d_.waiting) whole("Waiting", *d_.waiting, Unit::waiting, waiting_measure);
        for (const auto& list : d_.lists) changes(list);
        values();
        if (!unchanged_.empty() || !missing_.empty()) out_ += "\n";
        if (!unchanged_.empty()) fact("Unchanged", fmt::format("{}", fmt::join(unchanged_, ", ")));
        for (const auto& why : missing_) fact("Missing", why);
        return std::move(out_);
    }

  private:
    void fact(const std::string& label, const std::string& text, Tint tint = Tint::none) {
        out_ += labelled_line(paint_, label, text, label_columns, width_, tint);
    }

    void whole(const std::string& label, const Change& c, Unit unit, std::string_view of) {
        fact(label, whole_text(c, unit, of), c.is_real() ? Tint::bold : Tint::none);
    }

    void profile(const std::string& label, const DiffedProfile& p) {
        auto text = fmt::format("{}: {}", printable(p.name), printable(p.command));
        text += fmt::format("; mode {}", printable(p.mode));
        if (p.runs > 1) text += fmt::format(", {}", counted("run", p.runs));
        if (!d_.exact) text += fmt::format(", {}", counted("sample", p.samples));
        fact(label, text);
    }

    void verdicts(const GateResult& gate) {
        for (const auto& v : gate.verdicts) {
            const auto text = fmt::format("{} ({})", verdict_text(v), v.limit);
            auto lines = wrap_words(printable(text), label_columns, width_);
            lines.pop_back();
            out_ += v.exceeded ? paint_.alarm(pad_right("EXCEEDED", label_columns)) + lines
                               : pad_right("within", label_columns) + lines;
            out_ += "\n";
        }
        if (gate.functions_checked != 0)
            fact("Checked", counted("function", gate.functions_checked) + " one by one");
        fact("Result", gate.passed() ? "within the limits" : "beyond the limits", Tint::bold);
    }

    void title(const std::string& text, const std::string& explanation) {
        out_ += "\n" + paint_.bold(text);
        auto lines =
            wrap_words("(" + explanation + ")", 2, width_ - std::min(width_, text.size() + 1));
        lines.pop_back();
        out_ += " " + paint_.dim(lines) + "\n";
    }

    void changes(const DiffList& list) {
        if (!list.why_not.empty()) return missing_.push_back(printable(list.why_not));
        // A note says of which it cannot be told.
        if (std::ranges::any_of(list.changes, &Change::has_too_few_samples)) return;
        const auto real = count_real(list);
        if (real == 0)
            return unchanged_.push_back(
                fmt::format("{} ({})", list.name, count_text(list.changes.size())));
        title("Changed " + std::string(list.name),
              fmt::format("{} of {}; {}", real, count_text(list.changes.size()),
                          list.unit == Unit::count   ? fmt::format("{} of a run", list.measure)
                          : list.unit == Unit::share ? fmt::format("shares of all {}", list.measure)
                                                     : std::string(list.measure)));
        TextTable table({{"base"},
                         {"new"},
                         {"change"},
                         {"noise", Column::Align::right, 4},
                         {"share", Column::Align::right, 5},
                         {std::string(list.name), Column::Align::left, 9, 1}});
        for (const auto* c : real_changes(list, options_.top))
            table.add({{amount_text(c->base, list.unit)},
                       {amount_text(c->now, list.unit), Tint::bold},
                       {difference_text(*c), c->difference() > 0 ? Tint::heat : Tint::accent, 0.5},
                       {noise_text(*c, list.unit), Tint::dim},
                       {share_text(std::max(list.base_share(*c), list.now_share(*c))), Tint::dim},
                       {printable(c->name)}});
        out_ += table.render(width_, paint_);
    }

    void values() {
        if (!d_.values_why_not.empty()) return missing_.push_back(printable(d_.values_why_not));
        if (d_.values.empty()) return unchanged_.push_back("values");
        title("Changed values", fmt::format("of {}: the share of executions that see a value",
                                            counted("operand", d_.values.size())));
        TextTable table({{"base"},
                         {"new"},
                         {"see", Column::Align::left, 9, 2},
                         {"now most often", Column::Align::left, 5, 2},
                         {"in", Column::Align::left, 8, 1},
                         {"of", Column::Align::left, 4, 2},
                         {"where", Column::Align::left, 9, 3}});
        for (std::size_t i = 0; i < std::min(options_.top, d_.values.size()); ++i) {
            const auto& v = d_.values[i];
            table.add({{share_text(v.base_share)},
                       {share_text(v.now_share), Tint::bold},
                       {v.base_value},
                       {v.now_value == v.base_value ? "" : v.now_value},
                       {v.operand},
                       {v.text, Tint::dim},
                       {printable(v.place)}});
        }
        out_ += table.render(width_, paint_);
    }

    const Diff& d_;
    const DiffTextOptions options_;
    const std::size_t width_;
    const Paint paint_;
    std::string out_;
    std::vector<std::string> unchanged_, missing_;  // lists, in words
};

// Escapes characters that have a meaning in Markdown or HTML.
std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : printable(text)) {
        if (c == '<')
            out += "&lt;";
        else if (c == '&')
            out += "&amp;";
        else if (std::string_view("|\\`*_[]~#@").find(c) != std::string_view::npos)
            out += std::string("\\") + c;
        else
            out += c;
    }
    return out;
}

}  // namespace

std::string render_diff(const Diff& diff, const GateResult* gate, const DiffTextOptions& options) {
    return DiffText(diff, options).render(gate);
}

std::string render_diff_markdown(const Diff& d, const GateResult* gate, std::size_t top) {
    std::string out;
    if (gate)
        out += fmt::format("### {} Performance gate: {}\n\n", gate->passed() ? "✅" : "❌",
                           gate->passed() ? "within the limits" : "beyond the limits");
    else
        out += "### Performance: what changed\n\n";
    out += fmt::format("{} against {}", escaped(d.now.name), escaped(bases_text(d)));
    out += "\n\n";
    if (d.instructions) out += whole_text(*d.instructions, Unit::count, "instructions") + "\n\n";
    if (d.waiting)
        out += fmt::format("waiting for loads: {}\n\n",
                           whole_text(*d.waiting, Unit::waiting, waiting_measure));
    for (const auto& note : d.notes) out += fmt::format("> {}\n\n", escaped(note));
    if (gate && !gate->verdicts.empty()) {
        out += "| | limit | |\n|---|---|---|\n";
        for (const auto& v : gate->verdicts)
            out += fmt::format("| {} | `{}` | {} |\n", v.exceeded ? "❌" : "✅", printable(v.limit),
                               escaped(verdict_text(v)));
        out += "\n";
    }
    for (const auto& list : d.lists) {
        const auto real = count_real(list);
        if (real == 0) continue;
        out += fmt::format("<details{}><summary>{} changed {}</summary>\n\n",
                           list.name == "functions" ? " open" : "", real, list.name);
        out +=
            fmt::format("| {} | base | new | change | noise |\n|---|--:|--:|--:|--:|\n", list.name);
        for (const auto* c : real_changes(list, top))
            out += fmt::format("| {} | {} | {} | {} | {} |\n", escaped(c->name),
                               amount_text(c->base, list.unit), amount_text(c->now, list.unit),
                               difference_text(*c), noise_text(*c, list.unit));
        if (real > top) out += fmt::format("\n… and {} more\n", real - top);
        out += "\n</details>\n\n";
    }
    if (!d.values.empty()) {
        out += fmt::format("<details><summary>{} operands see other values</summary>\n\n",
                           d.values.size());
        out +=
            "| where | operand | value | base | new | now most often |\n"
            "|---|---|---|--:|--:|---|\n";
        for (std::size_t i = 0; i < std::min(top, d.values.size()); ++i) {
            const auto& v = d.values[i];
            out += fmt::format("| {} | {} | {} | {} | {} | {} |\n", escaped(v.place),
                               escaped(v.operand), escaped(v.base_value), share_text(v.base_share),
                               share_text(v.now_share),
                               v.now_value == v.base_value ? "" : escaped(v.now_value));
        }
        out += "\n</details>\n";
    }
    return out;
}

}  // namespace shadowprof::report
