#include "report/page/page_code.h"

#include <algorithm>
#include <map>
#include <optional>

#include "model/utf8.h"
#include "report/symbols/find_function.h"
#include "report/symbols/source_text.h"
#include "report/text/format.h"
#include "report/views/annotated_code.h"
#include "report/views/shares.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t shortest_gap = 6;     // instructions that never ran, in a row
constexpr std::uint32_t context_lines = 6;  // of source around those that have code

class CodeWriter {
  public:
    CodeWriter(JsonOutput& out, const Profile& profile, Symbols& symbols, PageIndex& index)
        : out_(out), p_(profile), symbols_(symbols), index_(index) {}

    // The lines that were written.
    std::size_t write(const FunctionChoice& function, std::size_t most_lines) {
        const auto& inside = p_.at(function.location);
        const auto code = annotate_function(p_, inside, symbols_);
        if (code.lines.empty() || code.lines.size() > most_lines) return 0;
        out_.break_line();
        out_.open_object();
        out_.key("name").text(printable(function.name));
        out_.key("label").number(index_.string(function_label(p_, inside)));
        out_.key("module").number(inside.module);
        out_.key("at").number(inside.function_offset.value_or(inside.offset));
        out_.key("quoted_only").boolean(code.quoted_only);
        out_.key("counted").boolean(code.counted);
        out_.key("executions").rounded(code.executions);
        out_.key("share");
        const auto share = share_of_function(function);
        share ? out_.rounded(*share) : out_.null();
        out_.key("lines").open_array();
        for (std::size_t i = 0; i < code.lines.size();) i = line_or_gap(code, i);
        out_.close_array();
        source(code,
               sources_.try_emplace(inside.module, p_.modules[inside.module].path).first->second);
        out_.close_object();
        return code.lines.size();
    }

  private:
    // Of all instructions; nothing if the profile does not say.
    std::optional<double> share_of_function(const FunctionChoice& function) const {
        const auto weight = static_cast<double>(function.weight);
        if (const auto* methods = p_.find<MethodSection>())
            return fraction(weight, static_cast<double>(methods->instructions.total));
        const auto all = weighted_instructions(p_);
        if (!all || !p_.find<PathSection>()) return {};
        return fraction(weight, static_cast<double>(*all));
    }

    // [offset, text, executions, file, line, [note or [share of all waiting, note]…]], or the
    // number of instructions left out.
    std::size_t line_or_gap(const AnnotatedCode& code, std::size_t i) {
        std::size_t end = i;
        while (code.counted && code.executions > 0 && end < code.lines.size() &&
               code.lines[end].executions == 0)
            ++end;
        if (end - i >= shortest_gap) {
            out_.number(end - i);
            return end;
        }
        const auto& l = code.lines[i];
        out_.open_array();
        out_.number(l.instruction.offset);
        out_.number(index_.string(l.text));
        out_.number(l.executions);
        out_.number(index_.string(file_name(l.source.file)));
        out_.number(l.source.line);
        if (!l.notes.empty() || !l.loads.empty()) {
            out_.open_array();
            for (const auto& note : l.notes) out_.text(note);
            for (const auto& load : l.loads) {
                out_.open_array();
                out_.rounded(load.share);
                out_.text(load.text);
                out_.close_array();
            }
            out_.close_array();
        }
        out_.close_array();
        return i + 1;
    }

    struct Place {
        std::string file;
        std::uint32_t line = 0;
        auto operator<=>(const Place&) const = default;
    };
    // Where the function's own text has it: what was inlined counts for the line that called it.
    static Place own_place(const SourceLine& s) {
        if (s.inlined.empty()) return {s.file, s.line};
        return {s.inlined.back().file, s.inlined.back().line};
    }

    // Lines of the file that most of the function is in, and around them.
    void source(const AnnotatedCode& code, SourceText& text) {
        struct Sum {
            std::uint64_t most = 0;
            double instructions = 0;
        };
        std::map<Place, Sum> by_line;
        std::map<std::string, std::size_t> by_file;
        for (const auto& l : code.lines) {
            const auto place = own_place(l.source);
            if (place.file.empty() || place.line == 0) continue;
            auto& sum = by_line[place];
            sum.most = std::max(sum.most, l.executions);
            sum.instructions += static_cast<double>(l.executions);
            ++by_file[place.file];
        }
        if (by_file.empty()) return;
        const auto& file =
            std::max_element(by_file.begin(), by_file.end(), [](const auto& a, const auto& b) {
                return a.second < b.second;
            })->first;
        out_.key("file").text(printable(file));
        out_.key("source").open_array();
        std::uint32_t next = 1;
        for (const auto& [place, sum] : by_line) {
            if (place.file != file) continue;
            const auto first = place.line - std::min(place.line - 1, context_lines);
            for (auto n = std::max(next, first); n < place.line; ++n)
                source_line(text, file, n, 0, 0);
            source_line(text, file, place.line, sum.most, sum.instructions);
            next = place.line + 1;
            // Up to the next line with code, if that is near.
            const auto following = by_line.upper_bound(place);
            const auto end = following != by_line.end() && following->first.file == file
                                 ? following->first.line
                                 : place.line + context_lines / 2;
            for (; next < end && next <= place.line + context_lines / 2; ++next)
                if (!source_line(text, file, next, 0, 0)) break;
        }
        out_.close_array();
    }

    bool source_line(SourceText& sources, const std::string& file, std::uint32_t number,
                     std::uint64_t most, double instructions) {
        const auto text = sources.line(file, number);
        if (text.empty() && most == 0 && !sources.has(file)) return false;
        out_.open_array();
        out_.number(number);
        out_.text(text);
        out_.number(most);
        out_.rounded(instructions);
        out_.close_array();
        return true;
    }

    JsonOutput& out_;
    const Profile& p_;
    Symbols& symbols_;
    PageIndex& index_;
    std::map<ModuleIndex, SourceText> sources_;
};

}  // namespace

void write_code(JsonOutput& out, const Profile& profile, Symbols& symbols, PageIndex& index,
                const PageLimits& limits) {
    out.break_line();
    out.key("code").open_array();
    CodeWriter writer(out, profile, symbols, index);
    std::size_t functions = 0, room = limits.code_lines;
    for (const auto& function : functions_by_heat(profile)) {
        if (functions == limits.functions || room == 0) break;
        const auto& l = profile.at(function.location);
        if (!l.function_offset || l.content != 0 || function.weight == 0) continue;
        const auto lines = writer.write(function, room);
        room -= lines;
        functions += lines > 0;
    }
    out.close_array();
}

}  // namespace shadowprof::report
