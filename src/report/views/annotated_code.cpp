#include "report/views/annotated_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/utf8.h"
#include "profile/latency/latency_words.h"
#include "profile/value/value_words.h"
#include "report/diff/sweep.h"
#include "report/text/format.h"
#include "report/views/shares.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t largest_function = 1 << 20;
constexpr std::size_t targets_shown = 3;

// "71 % of all waiting, 120 ns each; memory 97 %"; empty if the load is not worth a line.
std::string latency_note(const LatencySection& list, const LatencyEntry& entry) {
    constexpr double least_share = 0.01;
    if (entry.timed == 0) {
        const auto near = entry.by_model[0] + entry.by_model[1];
        if (entry.modelled == 0 || near == entry.modelled) return {};
        return levels_text(entry);
    }
    const auto share = share_texts(entry.statistics, list.totals);
    if (share.share < least_share) return {};
    auto text =
        fmt::format("{} of all waiting, {} each", share.text, nanoseconds_text(entry.mean_ns()));
    if (const auto levels = levels_text(entry); !levels.empty()) text += "; " + levels;
    return text;
}

class Annotator {
  public:
    Annotator(const Profile& profile, const Location& inside, Symbols& symbols)
        : p_(profile),
          inside_(inside),
          module_{profile.modules[inside.module].path, profile.modules[inside.module].build_id},
          symbols_(symbols) {}

    AnnotatedCode annotate() {
        if (inside_.function_offset) from_file();
        if (code_.lines.empty()) from_profile();
        count();
        add_notes();
        return std::move(code_);
    }

  private:
    bool is_inside(const Location& l) const { return is_in_function_of(l, inside_); }
    bool is_inside(LocationIndex i) const { return is_inside(p_.at(i)); }

    void from_file() {
        const auto function = symbols_.function_at(module_, *inside_.function_offset);
        if (!function || function->begin != *inside_.function_offset) return;
        const auto size =
            std::min<std::uint64_t>(function->end - function->begin, largest_function);
        const auto code = symbols_.code_of(module_, function->begin, size);
        sweep(code, Address{function->begin}, [&](const decoder::Instruction& i, bool follows) {
            const bool ends_block =
                i.flow != decoder::Flow::next && i.flow != decoder::Flow::system_call;
            const auto at = i.address.value;
            code_.lines.push_back({{at, ends_block, follows},
                                   decoder::text(i),
                                   symbols_.line_at(module_, at),
                                   0,
                                   {},
                                   {}});
        });
    }

    void from_profile() {
        std::map<std::uint64_t, CodeLine> found;
        std::vector<bool> is_branch(p_.locations.size());
        if (p_.find<EdgeSection>())
            for (const auto& e : p_.find<EdgeSection>()->entries) is_branch[e.from] = true;
        for (LocationIndex i = 0; i < p_.locations.size(); ++i) {
            const auto& l = p_.at(i);
            if (!is_inside(l) || l.text.empty()) continue;
            found.insert_or_assign(l.offset, CodeLine{{l.offset, is_branch[i], false},
                                                      printable(l.text),
                                                      {l.file, l.line, l.inlined},
                                                      0,
                                                      {},
                                                      {}});
        }
        for (auto& [offset, line] : found) code_.lines.push_back(std::move(line));
        code_.quoted_only = true;
    }

    void count() {
        std::vector<ListedInstruction> instructions;
        for (const auto& l : code_.lines) instructions.push_back(l.instruction);
        const auto counts = execution_counts(p_, inside_.module, instructions);
        if (!counts) return;
        code_.counted = true;
        for (std::size_t i = 0; i < code_.lines.size(); ++i) {
            code_.lines[i].executions = (*counts)[i];
            code_.executions += static_cast<double>((*counts)[i]);
        }
    }

    void add_notes() {
        std::map<std::uint64_t, std::vector<const EdgeEntry*>> edges;
        std::map<std::uint64_t, std::vector<std::string>> values;
        std::map<std::uint64_t, std::vector<LoadNote>> loads;
        if (p_.find<EdgeSection>())
            for (const auto& e : p_.find<EdgeSection>()->entries)
                if (is_inside(e.from)) edges[p_.at(e.from).offset].push_back(&e);
        if (p_.find<ValueSection>())
            for (const auto& e : p_.find<ValueSection>()->entries)
                if (is_inside(e.location) && !is_constant_by_construction(p_, e))
                    if (auto text = values_text(e); !text.empty())
                        values[p_.at(e.location).offset].push_back(std::move(text));
        if (p_.find<LatencySection>())
            for (const auto& e : p_.find<LatencySection>()->entries)
                if (is_inside(e.location))
                    if (auto text = latency_note(*p_.find<LatencySection>(), e); !text.empty())
                        loads[p_.at(e.location).offset].push_back(
                            {share_of(e.statistics, p_.find<LatencySection>()->totals).share,
                             std::move(text)});
        for (auto& line : code_.lines) {
            if (const auto found = edges.find(line.instruction.offset); found != edges.end())
                if (auto text = edges_text(found->second); !text.empty())
                    line.notes.push_back(std::move(text));
            if (const auto found = values.find(line.instruction.offset); found != values.end())
                for (auto& text : found->second) line.notes.push_back(std::move(text));
            if (const auto found = loads.find(line.instruction.offset); found != loads.end())
                line.loads = std::move(found->second);
        }
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
        auto text = value_note(p_, e);
        if (text.empty()) return text;
        if (const auto from = e.context ? e.context : e.caller)
            text += " if called from " + full_label(p_, p_.at(*from));
        if (!e.state.empty()) text += " in " + profile::state_text(e.state);
        return text;
    }

    const Profile& p_;
    const Location& inside_;
    const trace::Module module_;
    Symbols& symbols_;
    AnnotatedCode code_;
};

}  // namespace

bool is_in_function_of(const Location& l, const Location& inside) {
    return l.module == inside.module && l.function_offset == inside.function_offset;
}

AnnotatedCode annotate_function(const Profile& profile, const Location& inside, Symbols& symbols) {
    return Annotator(profile, inside, symbols).annotate();
}

}  // namespace shadowprof::report
