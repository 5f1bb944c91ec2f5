#include "report/text/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "model/utf8.h"
#include "profile/path/path.h"
#include "profile/time/time_words.h"
#include "report/model/steps.h"
#include "report/symbols/demangle.h"
#include "report/symbols/find_function.h"
#include "report/symbols/source_text.h"
#include "report/text/format.h"
#include "report/text/source_listing.h"
#include "report/text/text_table.h"
#include "report/views/annotated_code.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t count_columns = 8, share_columns = 7, gap = 2;
constexpr std::size_t shortest_gap_shown = 6;  // instructions never seen, in a row
constexpr std::size_t callers_shown = 4;

std::string share_bar(double share) {  // "██████··"
    constexpr int cells = 8;
    const auto full = static_cast<int>(std::ceil(share * cells));
    std::string text;
    for (int i = 0; i < cells; ++i) text += i < full ? "█" : "·";
    return text;
}

class Listing {
  public:
    Listing(const Profile& profile, const Location& inside, const TextOptions& options)
        : p_(profile),
          inside_(inside),
          module_{profile.modules[inside.module].path, profile.modules[inside.module].build_id},
          width_(options.width),
          top_(options.top),
          paint_(options.color),
          symbols_(options.symbols),
          sources_(module_.path) {}

    std::string render() {
        code_ = annotate_function(p_, inside_, symbols_);
        header();
        for (std::size_t i = 0; i < code_.lines.size();) i = skip_unseen(i);
        paths();
        return std::move(out_);
    }

  private:
    bool is_inside(const Location& l) const { return is_in_function_of(l, inside_); }
    bool is_inside(LocationIndex i) const { return is_inside(p_.at(i)); }

    // --- what is written

    void header() {
        const auto name =
            inside_.function.empty() ? function_label(p_, inside_) : printable(inside_.function);
        out_ += paint_.bold(shorten_end(name, width_)) + "\n";
        std::string where = printable(module_.path) + " " + hex_text(*inside_.function_offset);
        if (!inside_.file.empty()) where += ", " + printable(inside_.file);
        fact("in", where);
        if (p_.find<MethodSection>())
            for (const auto& e : p_.find<MethodSection>()->entries)
                if (is_inside(e.function)) fact("ran", method_text(e));
        if (p_.find<CallerSection>()) {
            fact("with all", with_callees_text());
            fact("callers", costs_text([&](const CallerEntry& e) { return is_inside(e.function); },
                                       [&](const CallerEntry& e) { return *e.caller; }));
            fact("callees", costs_text([&](const CallerEntry& e) { return is_inside(*e.caller); },
                                       [&](const CallerEntry& e) { return e.function; }));
        } else if (p_.find<CallSection>()) {
            fact("callers", pairs_text([&](const CallEntry& e) { return is_inside(e.to); },
                                       [&](const CallEntry& e) { return e.from; }));
            fact("callees", pairs_text([&](const CallEntry& e) { return is_inside(e.from); },
                                       [&](const CallEntry& e) { return e.to; }));
        }
        if (code_.quoted_only)
            fact("note",
                 "the file is not there or is another build: only instructions that the "
                 "profile quotes are listed");
        out_ += "\n";
        const auto title =
            pad_left("count", count_columns) + pad_left("share", gap + share_columns);
        if (code_.counted && !code_.lines.empty()) out_ += paint_.dim(title) + "\n";
    }

    void fact(const std::string& label, const std::string& text) {
        if (text.empty()) return;
        constexpr std::size_t label_columns = 11;
        out_ += paint_.dim(pad_right("  " + label, label_columns)) +
                wrap_words(text, label_columns, width_);
    }

    std::string method_text(const MethodEntry& e) const {
        const auto share = share_texts(e.instructions, p_.find<MethodSection>()->instructions);
        auto text = share.text + " of instructions";
        if (!share.interval.empty()) text += " (" + share.interval + ")";
        if (e.calls || p_.find<MethodSection>()->totals.exhaustive)
            text += ", " + counted("call", e.calls);
        if (e.tail_calls) text += ", " + counted("tail call", e.tail_calls);
        return text + ", " + counted("loop", e.back_edges);
    }

    std::string with_callees_text() const {
        const auto& list = *p_.find<CallerSection>();
        for (const auto& e : list.entries) {
            if (e.caller || !is_inside(e.function)) continue;
            const auto share = share_texts(e.inclusive, list.totals);
            auto text = share.text + " of instructions";
            if (!share.interval.empty()) text += " (" + share.interval + ")";
            return text + " with what it calls";
        }
        return {};
    }

    // The other ends of calls, each with its share of all instructions: of what callees do for
    // this function, or of what this function and its callees do for a caller.
    template <class Wanted, class Other>
    std::string costs_text(Wanted wanted, Other other) const {
        const auto& list = *p_.find<CallerSection>();
        std::string text;
        std::size_t more = 0, shown = 0;
        for (const auto& e : list.entries) {
            if (!e.caller || !wanted(e)) continue;
            if (shown == callers_shown) {
                ++more;
                continue;
            }
            text += fmt::format("{}{} {}", shown++ ? ", " : "", function_label(p_, p_.at(other(e))),
                                share_texts(e.inclusive, list.totals).text);
            // It was on the stack when samples began: of calls nothing was seen.
            if (e.calls != 0) text += fmt::format(" ({})", counted("call", e.calls));
        }
        return more ? text + fmt::format(", {} more", more) : text;
    }

    // The other ends of calls: functions, each with its share of these calls.
    template <class Wanted, class Other>
    std::string pairs_text(Wanted wanted, Other other) const {
        std::map<std::string, double> by_name;
        double total = 0;
        for (const auto& e : p_.find<CallSection>()->entries) {
            if (!wanted(e)) continue;
            const auto count = static_cast<double>(e.statistics.count);
            by_name[function_label(p_, p_.at(other(e)))] += count;
            total += count;
        }
        std::vector<std::pair<double, std::string>> order;
        order.reserve(by_name.size());
        for (auto& [name, count] : by_name) order.emplace_back(count, name);
        std::stable_sort(order.begin(), order.end(),
                         [](const auto& a, const auto& b) { return a.first > b.first; });
        std::string text;
        for (std::size_t i = 0; i < std::min(order.size(), callers_shown); ++i)
            text += (i ? ", " : "") + order[i].second + " " +
                    share_text(total > 0 ? order[i].first / total : 0);
        if (order.size() > callers_shown)
            text += fmt::format(", {} more", order.size() - callers_shown);
        return text;
    }

    // Writes this line, or one line for a whole run of instructions that were never executed.
    // Returns the index of the next line.
    std::size_t skip_unseen(std::size_t i) {
        std::size_t end = i;
        while (code_.counted && code_.executions > 0 && end < code_.lines.size() &&
               code_.lines[end].executions == 0)
            ++end;
        if (end - i < shortest_gap_shown) {
            line(code_.lines[i]);
            return i + 1;
        }
        out_ += paint_.dim(shorten_end(
                    std::string(margin(), ' ') +
                        fmt::format("⋮ {} instructions that were not seen to run", end - i),
                    width_)) +
                "\n";
        last_source_ = {};
        return end;
    }

    std::size_t margin() const {
        return code_.counted ? count_columns + gap + share_columns + gap : 2;
    }

    void line(const CodeLine& l) {
        source(l.source);
        std::string out;
        std::size_t used = margin();
        const double share =
            code_.executions > 0 ? static_cast<double>(l.executions) / code_.executions : 0;
        if (code_.counted) {
            const auto count = l.executions ? count_text(l.executions) : "";
            const auto part = l.executions ? share_text(share) : "";
            out += paint_.heat(share, pad_left(count, count_columns) +
                                          pad_left(part, gap + share_columns)) +
                   std::string(gap, ' ');
        } else {
            out += std::string(used, ' ');
        }
        const auto offset = fmt::format("{:6x}  ", l.instruction.offset);
        out += paint_.dim(offset);
        used += offset.size();

        // Notes are in a column beside the instructions, or below them if there is no room for one.
        const auto room = width_ - std::min(width_, used);
        const bool wide = room >= 64;
        const std::size_t note_column = wide ? std::min<std::size_t>(room / 2, 44) : 4;
        const auto code = shorten_middle(l.text, room);
        out += code;
        bool on_this_line = wide && columns_of(code) + gap <= note_column;
        auto notes = l.notes;
        for (const auto& load : l.loads) notes.push_back(share_bar(load.share) + " " + load.text);
        for (const auto& note : notes) {
            out += on_this_line ? std::string(note_column - columns_of(code), ' ')
                                : "\n" + std::string(used + note_column, ' ');
            out += paint_.accent(shorten_end(note, room - std::min(room, note_column)));
            on_this_line = false;
        }
        out_ += out + "\n";
    }

    void source(const SourceLine& s) {
        if (s.file.empty() || (s.file == last_source_.file && s.line == last_source_.line)) return;
        const bool same_file = s.file == last_source_.file;
        last_source_ = s;
        auto place = fmt::format("{}:{}", same_file ? "" : file_name(s.file), s.line);
        if (!s.inlined.empty())
            place += " in " + without_parameters(printable(s.inlined.front().function));
        const auto text = sources_.line(s.file, s.line);
        const auto indent = std::string(margin(), ' ');
        const auto room = width_ - margin();
        const auto shown = shorten_middle(place, room);
        out_ += indent + paint_.dim(shown);
        if (!text.empty() && room > columns_of(shown) + gap)
            out_ += paint_.bold(shorten_end("  " + text, room - columns_of(shown)));
        out_ += "\n";
    }

    void paths() {
        if (!p_.find<PathSection>()) return;
        std::vector<const PathEntry*> through;
        for (const auto& e : p_.find<PathSection>()->entries)
            if (std::any_of(e.blocks.begin(), e.blocks.end(),
                            [&](const auto& b) { return is_inside(b.start); }))
                through.push_back(&e);
        if (through.empty()) return;
        out_ += "\n" + paint_.bold("Hot paths through it") + "\n";
        for (std::size_t i = 0; i < std::min(through.size(), top_); ++i) {
            const auto& e = *through[i];
            const auto share = share_texts(e.statistics, p_.find<PathSection>()->totals);
            out_ += "  " + paint_.heat(share.share, pad_left(share.text, 7)) +
                    paint_.dim("  " + count_text(e.statistics.count) + " ×") + "\n";
            out_ += wrap_steps(path_steps(p_, profile::steps_of(e)), 6, width_, 3);
        }
    }

    const Profile& p_;
    const Location& inside_;
    const trace::Module module_;
    const std::size_t width_;
    const std::size_t top_;
    const Paint paint_;
    Symbols symbols_;
    SourceText sources_;
    AnnotatedCode code_;
    SourceLine last_source_;
    std::string out_;
};

}  // namespace

std::string render_listing(const Profile& profile, const std::string& function,
                           const TextOptions& options) {
    const auto matches = find_function(profile, function);
    const Paint paint(options.color);
    std::string note;
    if (matches.size() > 1) {
        constexpr std::size_t most = 8;
        std::vector<std::string> others;
        for (std::size_t i = 1; i < std::min(matches.size(), most); ++i)
            others.push_back(matches[i].name);
        if (matches.size() > most) others.push_back(fmt::format("{} more", matches.size() - most));
        note = "\n" + wrap_words(fmt::format("'{}' also matches: {}", printable(function),
                                             fmt::join(others, ", ")),
                                 2, options.width);
    }
    const auto& inside = profile.at(matches.front().location);
    return (profile::is_interpreted(profile, inside)
                ? render_source_listing(profile, inside, options)
                : Listing(profile, inside, options).render()) +
           note;
}

}  // namespace shadowprof::report
