#include "report/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "decoder/decoder.h"
#include "report/demangle.h"
#include "report/execution_counts.h"
#include "report/find_function.h"
#include "report/format.h"
#include "report/source_text.h"
#include "report/steps.h"
#include "report/text_table.h"
#include "report/utf8.h"
#include "report/value_notes.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t largest_function = 1 << 20;
constexpr std::size_t count_columns = 8, share_columns = 7, gap = 2;
constexpr std::size_t shortest_gap_shown = 6;  // instructions never seen, in a row
constexpr std::size_t callers_shown = 4;
constexpr std::size_t targets_shown = 3;

struct Line {
    ListedInstruction instruction;
    std::string text;
    SourceLine source;
    std::uint64_t executions = 0;
};

// What the profile says about one location, gathered before the lines are written.
struct Notes {
    std::vector<const EdgeEntry*> edges;
    std::vector<const ValueEntry*> values;
};

class Listing {
  public:
    Listing(const Profile& profile, const Location& inside, const TextOptions& options)
        : p_(profile),
          inside_(inside),
          module_{profile.modules[inside.module].path, profile.modules[inside.module].build_id},
          width_(options.width),
          top_(options.top),
          paint_(options.color),
          symbols_(options.symbols) {}

    std::string render() {
        from_file();
        if (lines_.empty()) from_profile();
        count();
        gather_notes();
        header();
        for (std::size_t i = 0; i < lines_.size();) i = skip_unseen(i);
        paths();
        return std::move(out_);
    }

  private:
    bool is_inside(const Location& l) const {
        return l.module == inside_.module && l.function_offset == inside_.function_offset;
    }
    bool is_inside(LocationIndex i) const { return is_inside(p_.at(i)); }

    // --- the code

    void from_file() {
        const auto function = symbols_.function_at(module_, *inside_.function_offset);
        if (!function || function->begin != *inside_.function_offset) return;
        const auto size =
            std::min<std::uint64_t>(function->end - function->begin, largest_function);
        const auto code = symbols_.code_of(module_, function->begin, size);
        std::span<const std::byte> rest = code;
        bool contiguous = false;
        for (Address at{function->begin}; !rest.empty();) {
            const auto i = decoder::decode(rest, at);
            if (!i) {  // data in the code
                at += 1;
                rest = rest.subspan(1);
                contiguous = false;
                continue;
            }
            const bool ends_block =
                i->flow != decoder::Flow::next && i->flow != decoder::Flow::system_call;
            lines_.push_back({{at.value, ends_block, contiguous},
                              decoder::text(*i),
                              symbols_.line_at(module_, at.value),
                              0});
            at = i->end();
            rest = rest.subspan(i->length);
            contiguous = true;
        }
    }

    void from_profile() {
        std::map<std::uint64_t, Line> found;
        std::vector<bool> is_branch(p_.locations.size());
        if (p_.edges)
            for (const auto& e : p_.edges->entries) is_branch[e.from] = true;
        for (LocationIndex i = 0; i < p_.locations.size(); ++i) {
            const auto& l = p_.at(i);
            if (!is_inside(l) || l.text.empty()) continue;
            found.insert_or_assign(l.offset, Line{{l.offset, is_branch[i], false},
                                                  printable(l.text),
                                                  {l.file, l.line, l.inlined},
                                                  0});
        }
        for (auto& [offset, line] : found) lines_.push_back(std::move(line));
        quoted_only_ = true;
    }

    void count() {
        std::vector<ListedInstruction> instructions;
        for (const auto& l : lines_) instructions.push_back(l.instruction);
        const auto counts = execution_counts(p_, inside_.module, instructions);
        if (!counts) return;
        counted_ = true;
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            lines_[i].executions = (*counts)[i];
            all_executions_ += static_cast<double>((*counts)[i]);
        }
    }

    void gather_notes() {
        if (p_.edges)
            for (const auto& e : p_.edges->entries)
                if (is_inside(e.from)) notes_[p_.at(e.from).offset].edges.push_back(&e);
        if (p_.values)
            for (const auto& e : p_.values->entries)
                if (is_inside(e.location) && !is_constant_by_construction(p_, e))
                    notes_[p_.at(e.location).offset].values.push_back(&e);
    }

    // --- what is written

    void header() {
        const auto name =
            inside_.function.empty() ? function_label(p_, inside_) : printable(inside_.function);
        out_ += paint_.bold(shorten_end(name, width_)) + "\n";
        std::string where = printable(module_.path) + " " + hex_text(*inside_.function_offset);
        if (!inside_.file.empty()) where += ", " + printable(inside_.file);
        fact("in", where);
        if (p_.methods)
            for (const auto& e : p_.methods->entries)
                if (is_inside(e.function)) fact("ran", method_text(e));
        if (p_.calls) {
            fact("callers", pairs_text([&](const CallEntry& e) { return is_inside(e.to); },
                                       [&](const CallEntry& e) { return e.from; }));
            fact("callees", pairs_text([&](const CallEntry& e) { return is_inside(e.from); },
                                       [&](const CallEntry& e) { return e.to; }));
        }
        if (quoted_only_)
            fact("note",
                 "the file is not there or is another build: only instructions that the "
                 "profile quotes are listed");
        out_ += "\n";
        const auto title =
            pad_left("count", count_columns) + pad_left("share", gap + share_columns);
        if (counted_ && !lines_.empty()) out_ += paint_.dim(title) + "\n";
    }

    void fact(const std::string& label, const std::string& text) {
        if (text.empty()) return;
        constexpr std::size_t label_columns = 11;
        out_ += paint_.dim(pad_right("  " + label, label_columns)) +
                wrap_words(text, label_columns, width_);
    }

    std::string method_text(const MethodEntry& e) const {
        const auto share = share_of(e.instructions, p_.methods->instructions);
        auto text = share.text + " of instructions";
        if (!share.interval.empty()) text += " (" + share.interval + ")";
        text += ", " + counted("call", e.calls);
        if (e.tail_calls) text += ", " + counted("tail call", e.tail_calls);
        return text + ", " + counted("loop", e.back_edges);
    }

    // The other ends of calls, by function, with their shares among them.
    template <class Wanted, class Other>
    std::string pairs_text(Wanted wanted, Other other) const {
        std::map<std::string, double> by_name;
        double total = 0;
        for (const auto& e : p_.calls->entries) {
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

    // Writes the line, or one for the whole run of instructions that never ran; says where to go
    // on.
    std::size_t skip_unseen(std::size_t i) {
        std::size_t end = i;
        while (counted_ && all_executions_ > 0 && end < lines_.size() &&
               lines_[end].executions == 0)
            ++end;
        if (end - i < shortest_gap_shown) {
            line(lines_[i]);
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

    std::size_t margin() const { return counted_ ? count_columns + gap + share_columns + gap : 2; }

    void line(const Line& l) {
        source(l.source);
        std::string out;
        std::size_t used = margin();
        const double share =
            all_executions_ > 0 ? static_cast<double>(l.executions) / all_executions_ : 0;
        if (counted_) {
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

        const auto noted = notes_.find(l.instruction.offset);
        std::vector<std::string> notes;
        if (noted != notes_.end()) {
            if (auto text = edges_text(noted->second.edges); !text.empty())
                notes.push_back(std::move(text));
            for (const auto* e : noted->second.values)
                if (auto text = values_text(*e); !text.empty()) notes.push_back(std::move(text));
        }
        // Notes stand in a column beside the instructions; without room for one, below them.
        const auto room = width_ - std::min(width_, used);
        const bool wide = room >= 64;
        const std::size_t note_column = wide ? std::min<std::size_t>(room / 2, 44) : 4;
        const auto code = shorten_middle(l.text, room);
        out += code;
        bool on_this_line = wide && columns_of(code) + gap <= note_column;
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
            place += " in " + printable(without_parameters(s.inlined.front().function));
        const auto text = sources_.line(s.file, s.line);
        const auto indent = std::string(margin(), ' ');
        const auto room = width_ - margin();
        const auto shown = shorten_middle(place, room);
        out_ += indent + paint_.dim(shown);
        if (!text.empty() && room > columns_of(shown) + gap)
            out_ += paint_.bold(shorten_end("  " + text, room - columns_of(shown)));
        out_ += "\n";
    }

    std::string edges_text(std::vector<const EdgeEntry*> edges) const {
        double total = 0;
        for (const auto* e : edges) total += static_cast<double>(e->statistics.count);
        if (total == 0) return {};
        std::stable_sort(edges.begin(), edges.end(), [](const auto* a, const auto* b) {
            return a->statistics.count > b->statistics.count;
        });
        std::string text;
        for (std::size_t i = 0; i < std::min(edges.size(), targets_shown); ++i)
            text += (i ? ", " : "") + target_text(*edges[i]) + " " +
                    share_text(static_cast<double>(edges[i]->statistics.count) / total);
        if (edges.size() > targets_shown)
            text += fmt::format(", {} more", edges.size() - targets_shown);
        return text;
    }

    std::string target_text(const EdgeEntry& e) const {
        const auto& from = p_.at(e.from);
        const auto& to = p_.at(e.to);
        if (e.kind == EdgeKind::fallthrough) return "↓ next";
        if (!is_inside(to)) return "→ " + place_label_of_target(to);
        return (to.offset > from.offset ? "↓ " : "↑ ") + fmt::format("{:x}", to.offset);
    }

    std::string place_label_of_target(const Location& to) const {
        const bool at_entry = to.function_offset == to.offset;
        return at_entry ? function_label(p_, to) : full_label(p_, to);
    }

    std::string values_text(const ValueEntry& e) const {
        auto text = value_note(e);
        if (!text.empty() && e.context)
            text += " if called from " + full_label(p_, p_.at(*e.context));
        return text;
    }

    void paths() {
        if (!p_.paths) return;
        std::vector<const PathEntry*> through;
        for (const auto& e : p_.paths->entries)
            if (std::any_of(e.blocks.begin(), e.blocks.end(),
                            [&](const auto& b) { return is_inside(b.start); }))
                through.push_back(&e);
        if (through.empty()) return;
        out_ += "\n" + paint_.bold("Hot paths through it") + "\n";
        for (std::size_t i = 0; i < std::min(through.size(), top_); ++i) {
            const auto& e = *through[i];
            const auto share = share_of(e.statistics, p_.paths->totals);
            out_ += "  " + paint_.heat(share.share, pad_left(share.text, 7)) +
                    paint_.dim("  " + count_text(e.statistics.count) + " ×") + "\n";
            out_ += wrap_steps(path_steps(p_, e), 6, width_, 3);
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
    std::vector<Line> lines_;
    std::map<std::uint64_t, Notes> notes_;  // by offset
    bool quoted_only_ = false;
    bool counted_ = false;
    double all_executions_ = 0;
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
    return Listing(profile, profile.at(matches.front().location), options).render() + note;
}

}  // namespace shadowprof::report
