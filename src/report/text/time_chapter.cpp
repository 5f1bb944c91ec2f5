#include "report/text/time_chapter.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/utf8.h"
#include "report/text/format.h"
#include "report/views/shares.h"
#include "report/views/time_shares.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t indent = 2;
constexpr std::size_t most_calls = 3;
constexpr double worth_telling = 0.01;

double seconds_of(std::uint64_t nanoseconds) {
    return static_cast<double>(nanoseconds) * 1e-9;
}

class Chapter {
  public:
    Chapter(const Profile& profile, const TimeSection& time, std::size_t top, std::size_t width,
            const Paint& paint)
        : p_(profile),
          time_(time),
          shares_(time_shares(profile, time)),
          top_(top),
          width_(width),
          paint_(paint) {}

    std::string render() {
        heading();
        if (time_.totals.total > 0) line(split_text());
        if (const auto text = waits_text(); !text.empty()) line(text);
        if (time_.totals.total == 0 && time_.waiting.total == 0)
            line("nothing was seen: it was too short, or only its children work");
        if (!shares_.functions.empty()) functions();
        if (shares_.threads.size() > 1) threads();
        return std::move(out_);
    }

  private:
    void heading() {
        const auto explanation = time_.totals.total > 0
                                     ? fmt::format("({} on processors, by {})",
                                                   seconds_text(seconds_of(time_.totals.total)),
                                                   counted("look", time_.totals.samples))
                                     : std::string("(no look met it on a processor)");
        const std::string title = "Where time goes";
        auto lines = wrap_words(explanation, indent, width_ - std::min(width_, title.size() + 1));
        lines.pop_back();
        out_ += "\n" + paint_.bold(title) + " " + paint_.dim(lines) + "\n";
    }

    void line(const std::string& text) {
        out_ += std::string(indent, ' ') + wrap_words(text, indent + 2, width_ - indent);
    }

    std::string share(const Statistics& part) const {
        return share_text(share_of(part, time_.totals).share);
    }

    std::string split_text() const {
        auto text = "user code " + share(shares_.user) + ", kernel " + share(shares_.kernel);
        std::vector<std::string> calls;
        for (const auto& [name, time] : shares_.calls) {
            if (calls.size() == most_calls || share_of(time, time_.totals).share < worth_telling)
                break;
            calls.push_back((name.empty() ? "calls unknown" : printable(name)) + " " + share(time));
        }
        if (!calls.empty()) text += fmt::format(" ({})", fmt::join(calls, ", "));
        if (time_.totals.unknown > 0)
            text += ", not known " + share_text(fraction(seconds_of(time_.totals.unknown),
                                                         seconds_of(time_.totals.total)));
        return text;
    }

    // Waiting for a processor by the way is no waiting.
    std::string waits_text() const {
        auto waiting = shares_.waiting;
        std::erase_if(waiting, [&](const auto& w) {
            return seconds_of(w.nanoseconds) < worth_telling * p_.run.duration;
        });
        if (waiting.empty()) return {};
        auto text = "waiting: " + waiting_text(waiting);
        if (shares_.threads.size() > 1) text += ", all threads together";
        return text;
    }

    static Cell dim(std::string text) { return {std::move(text), Tint::dim}; }

    void functions() {
        TextTable table({{"self"},
                         {"interval", Column::Align::right, 3},
                         {"with callees"},
                         {"in kernel", Column::Align::right, 5},
                         {"function", Column::Align::left, 9, 3},
                         {"where", Column::Align::left, 7, 2}});
        for (std::size_t n = 0; n < std::min(top_, shares_.functions.size()); ++n) {
            const auto& f = shares_.functions[n];
            const auto self = share_texts(f.self, time_.totals);
            table.add({{self.text, Tint::heat, self.share},
                       dim(self.interval),
                       {share(f.with_callees)},
                       {f.in_kernel.count > 0 ? share(f.in_kernel) : ""},
                       {f.function, Tint::bold},
                       dim(f.where)});
        }
        out_ += table.render(width_, paint_);
    }

    void threads() {
        TextTable table({{"on processors"},
                         {"in kernel", Column::Align::right, 5},
                         {"thread", Column::Align::left, 9, 2},
                         {"waiting", Column::Align::left, 7, 3}});
        for (std::size_t n = 0; n < std::min(top_, shares_.threads.size()); ++n) {
            const auto& t = shares_.threads[n];
            const auto part = share_of(t.on_processor, time_.totals).share;
            table.add({{share_text(part), Tint::heat, part},
                       {t.in_kernel.count > 0 ? share(t.in_kernel) : ""},
                       {printable(t.name), Tint::bold},
                       dim(waiting_text(t.waiting))});
        }
        out_ += table.render(width_, paint_);
    }

    const Profile& p_;
    const TimeSection& time_;
    const TimeShares shares_;
    const std::size_t top_, width_;
    const Paint& paint_;
    std::string out_;
};

}  // namespace

std::string time_chapter(const Profile& profile, std::size_t top, std::size_t width,
                         const Paint& paint) {
    const auto* const time = profile.find<TimeSection>();
    return time ? Chapter(profile, *time, top, width, paint).render() : std::string();
}

}  // namespace shadowprof::report
