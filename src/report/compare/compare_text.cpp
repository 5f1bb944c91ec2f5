#include "report/compare/compare_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "model/utf8.h"
#include "report/text/format.h"
#include "report/text/text_table.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t narrowest = 40;
constexpr std::size_t label_columns = 11;
constexpr std::size_t measure_columns = 15;
constexpr std::size_t figure_columns = 14;
constexpr std::size_t narrow = 75;  // explanations go below their figure

std::string figure_text(const Figure& figure) {
    const auto low = share_text(figure.low), high = share_text(figure.high);
    return low == high ? share_text(figure.value) : interval_text(figure.low, figure.high);
}

std::string optional_text(const std::optional<double>& share) {
    return share ? share_text(*share) : "";
}

class CompareText {
  public:
    CompareText(const Comparison& comparison, const CompareTextOptions& options)
        : c_(comparison),
          options_(options),
          width_(std::max(options.width, narrowest)),
          paint_(options.color) {}

    std::string render() {
        profile("Sampled", c_.sampled);
        profile("Perfect", c_.perfect);
        for (const auto& note : c_.notes) fact("Note", printable(note), Tint::accent);
        measures();
        lists();
        if (options_.functions) functions();
        return std::move(out_);
    }

  private:
    void fact(const std::string& label, const std::string& text, Tint tint = Tint::none) {
        out_ += labelled_line(paint_, label, text, label_columns, width_, tint);
    }

    void profile(const std::string& label, const ComparedProfile& p) {
        fact(label, printable(p.name), Tint::bold);
        fact("", printable(p.command));
        fact("", fmt::format("mode {}, {}{} in {}", printable(p.mode),
                             p.exhaustive ? "everything: " : "",
                             counted("instruction", p.instructions), counted("sample", p.samples)));
    }

    void title(const std::string& text, const std::string& explanation) {
        auto lines = wrap_words("(" + explanation + ")", 2, width_ - text.size() - 1);
        lines.pop_back();
        out_ += "\n" + paint_.bold(text) + " " + paint_.dim(lines) + "\n";
    }

    void measures() {
        out_ += "\n";
        if (c_.coverage.measure)
            measure("coverage", share_text(*c_.coverage.measure),
                    "instructions seen, of those executed");
        else
            missing("coverage", c_.coverage.why_not);

        if (const auto& m = c_.paths.measure)
            measure("path accuracy", figure_text(m->accuracy),
                    fmt::format("of the weight of the hottest 5 % ({} of {}) found by the sample "
                                "({})",
                                count_text(m->hottest), counted("path", m->paths),
                                count_text(m->found)));
        else
            missing("path accuracy", c_.paths.why_not);

        if (const auto& m = c_.edges.measure)
            measure("edge accuracy", figure_text(*m),
                    "1 less half the sum of all differences between edges' shares");
        else
            missing("edge accuracy", c_.edges.why_not);

        if (const auto& m = c_.values.measure)
            measure("Diff-Top", figure_text(m->difference),
                    fmt::format("mean error of the share of the most frequent value ({})",
                                counted("operand", m->operands)));
        else
            missing("Diff-Top", c_.values.why_not);

        overlap("call overlap", c_.calls, "call");
        overlap("method overlap", c_.methods, "function");
        // Few profiles have them.
        if (c_.streams.measure) overlap("stream overlap", c_.streams, "stream");
    }

    void overlap(const std::string& name, const Measured<TopOverlap>& overlap, const char* thing) {
        if (const auto& m = overlap.measure)
            measure(name, figure_text(m->accuracy),
                    fmt::format("of the top 90 % ({}) in the sample: {} of {}",
                                counted(thing, m->members), share_text(m->overlap),
                                share_text(m->best)));
        else
            missing(name, overlap.why_not);
    }

    void measure(const std::string& name, const std::string& figure,
                 const std::string& explanation) {
        row(name, pad_left(figure, figure_columns), explanation, Tint::bold);
    }
    void missing(const std::string& name, const std::string& why_not) {
        row(name, pad_left("–", figure_columns), why_not, Tint::dim);
    }
    void row(const std::string& name, const std::string& figure, const std::string& text,
             Tint tint) {
        const bool below = width_ < narrow;
        const auto indent = below ? 4 : 2 + measure_columns + figure_columns + 2;
        auto lines = wrap_words(printable(text), indent, width_);
        lines.pop_back();
        out_ += "  " + pad_right(name, measure_columns) +
                (tint == Tint::bold ? paint_.bold(figure) : figure) +
                (below ? "\n" + std::string(indent, ' ') : "  ") + paint_.dim(lines) + "\n";
    }

    static std::string extent_text(const ListExtent& e) {
        return e.dropped == 0 ? count_text(e.entries)
                              : fmt::format("{} of {}", count_text(e.entries),
                                            count_text(e.entries + e.dropped));
    }

    void lists() {
        title("Compared", "entries of each list, and the share of events in none of them");
        TextTable table({{"list", Column::Align::left},
                         {"sampled"},
                         {"in no entry", Column::Align::right, 4},
                         {"perfect"},
                         {"in no entry", Column::Align::right, 5},
                         {"in both", Column::Align::right, 6}});
        for (const auto& list : c_.lists)
            table.add({{std::string(list.name)},
                       {extent_text(list.sampled)},
                       {share_text(list.sampled.unlisted), Tint::dim},
                       {extent_text(list.perfect)},
                       {share_text(list.perfect.unlisted), Tint::dim},
                       {count_text(list.in_both)}});
        out_ += table.render(width_, paint_);
    }

    void functions() {
        title("Functions",
              c_.is_exact() ? "their shares of all instructions; then each one's own accuracy"
                            : "their shares of all instructions; then each one's own accuracy, by "
                              "what both profiles list");
        TextTable table({{"perfect"},
                         {"sampled"},
                         {"paths", Column::Align::right, 5},
                         {"edges", Column::Align::right, 6},
                         {"calls", Column::Align::right, 3},
                         {"Diff-Top", Column::Align::right, 4},
                         {"function", Column::Align::left, 9, 3},
                         {"where", Column::Align::left, 2, 2}});
        for (std::size_t i = 0; i < std::min(options_.top, c_.functions.size()); ++i) {
            const auto& f = c_.functions[i];
            table.add({{optional_text(f.perfect_share), Tint::heat, f.perfect_share.value_or(0)},
                       {optional_text(f.sampled_share)},
                       {optional_text(f.path_accuracy)},
                       {optional_text(f.edge_accuracy)},
                       {optional_text(f.call_overlap)},
                       {optional_text(f.diff_top)},
                       {f.label, Tint::bold},
                       {f.place, Tint::dim}});
        }
        out_ += table.render(width_, paint_);
    }

    const Comparison& c_;
    const CompareTextOptions options_;
    const std::size_t width_;
    const Paint paint_;
    std::string out_;
};

}  // namespace

std::string render_comparison(const Comparison& comparison, const CompareTextOptions& options) {
    return CompareText(comparison, options).render();
}

}  // namespace shadowprof::report
