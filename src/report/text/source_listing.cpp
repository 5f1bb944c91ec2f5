#include "report/text/source_listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "model/utf8.h"
#include "report/symbols/source_text.h"
#include "report/text/format.h"
#include "report/text/text_table.h"
#include "report/views/annotated_code.h"
#include "report/views/shares.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t share_columns = 8, number_columns = 7, others_shown = 4;
constexpr std::uint32_t widest_gap = 6;  // lines without time, in a row

class SourceListing {
  public:
    SourceListing(const Profile& profile, const Location& inside, const TextOptions& options)
        : p_(profile), inside_(inside), width_(options.width), paint_(options.color) {
        add_up();
    }

    std::string render() {
        out_ += paint_.bold(shorten_end(printable(inside_.function), width_)) + "\n";
        fact("in", printable(inside_.file));
        if (const auto* const time = p_.find<TimeSection>()) {
            const auto self = share_texts(self_, time->totals);
            auto text = self.text + " of the time itself";
            if (!self.interval.empty()) text += " (" + self.interval + ")";
            fact("time",
                 text + ", " + share_texts(with_callees_, time->totals).text + " with callees");
            fact("callers", others_text(callers_));
            fact("callees", others_text(callees_));
            lines(*time);
        }
        return std::move(out_);
    }

  private:
    struct OfLine {
        Statistics self, with_callees;
    };

    void add_up() {
        const auto* const time = p_.find<TimeSection>();
        if (!time) return;
        for (const auto& e : time->entries) {
            if (e.statistics.count == 0) continue;
            std::set<std::uint32_t> seen;
            std::set<std::string> callers, callees;
            for (std::size_t n = 0; n < e.frames.size(); ++n) {
                const auto& l = p_.at(e.frames[n]);
                if (!is_in_function_of(l, inside_)) continue;
                if (n == 0) self_.merge(e.statistics);
                if (n == 0) lines_[l.line].self.merge(e.statistics);
                if (seen.empty()) with_callees_.merge(e.statistics);
                if (seen.insert(l.line).second) lines_[l.line].with_callees.merge(e.statistics);
                if (n > 0) callees.insert(function_label(p_, p_.at(e.frames[n - 1])));
                if (n + 1 < e.frames.size())
                    callers.insert(function_label(p_, p_.at(e.frames[n + 1])));
            }
            for (const auto& caller : callers) callers_[caller].merge(e.statistics);
            for (const auto& callee : callees) callees_[callee].merge(e.statistics);
        }
    }

    void fact(const std::string& label, const std::string& text) {
        if (text.empty()) return;
        constexpr std::size_t label_columns = 11;
        out_ += paint_.dim(pad_right("  " + label, label_columns)) +
                wrap_words(text, label_columns, width_);
    }

    // The other ends of calls, each with its part of all time.
    std::string others_text(const std::map<std::string, Statistics>& others) const {
        std::vector<std::pair<std::string, Statistics>> order(others.begin(), others.end());
        std::ranges::stable_sort(order, std::greater{},
                                 [](const auto& other) { return other.second.count; });
        std::string text;
        for (std::size_t n = 0; n < std::min(order.size(), others_shown); ++n)
            text += fmt::format("{}{} {}", n ? ", " : "", order[n].first,
                                share_texts(order[n].second, p_.find<TimeSection>()->totals).text);
        if (order.size() > others_shown)
            text += fmt::format(", {} more", order.size() - others_shown);
        return text;
    }

    void lines(const TimeSection& time) {
        if (lines_.empty() || inside_.file.empty()) return;  // C code that is called as a method
        out_ += "\n" +
                paint_.dim(pad_left("self", share_columns) +
                           pad_left("with callees", share_columns + 6)) +
                "\n";
        std::uint32_t before = lines_.begin()->first;
        for (const auto& [number, of] : lines_) {
            if (number - before > widest_gap)
                out_ += paint_.dim(std::string(2 * share_columns + 6, ' ') + "      ⋮\n");
            else
                for (auto n = before + 1; n < number; ++n) line(n, {}, time);
            line(number, of, time);
            before = number;
        }
    }

    void line(std::uint32_t number, const OfLine& of, const TimeSection& time) {
        const auto text_of = [&](const Statistics& part) {
            return part.count > 0 ? share_texts(part, time.totals).text : std::string();
        };
        const auto share = of.with_callees.count > 0 ? share_texts(of.self, time.totals).share : 0;
        out_ += paint_.heat(share, pad_left(text_of(of.self), share_columns) +
                                       pad_left(text_of(of.with_callees), share_columns + 6)) +
                paint_.dim(pad_left(std::to_string(number), number_columns)) +
                shorten_end("  " + sources_.line(inside_.file, number),
                            width_ - std::min<std::size_t>(width_, 2 * share_columns + 13)) +
                "\n";
    }

    const Profile& p_;
    const Location& inside_;
    const std::size_t width_;
    const Paint paint_;
    SourceText sources_;
    Statistics self_, with_callees_;
    std::map<std::uint32_t, OfLine> lines_;
    std::map<std::string, Statistics> callers_, callees_;
    std::string out_;
};

}  // namespace

std::string render_source_listing(const Profile& profile, const Location& inside,
                                  const TextOptions& options) {
    return SourceListing(profile, inside, options).render();
}

}  // namespace shadowprof::report
