// speedscope's JSON (https://www.speedscope.app/file-format-schema.json): a table of frames, and
// stacks as indices into it.
#include <map>
#include <tuple>

#include "model/json_output.h"
#include "model/json_values.h"
#include "report/diff/shapes.h"
#include "report/exports/exports.h"
#include "report/exports/weighted_stacks.h"

namespace shadowprof::report {

Exported export_speedscope(const Profile& p, const ExportOptions& options) {
    auto stacks = stacks_to_show(p, options.weight);
    using Frame = std::tuple<std::string, std::string, std::uint32_t>;
    std::map<Frame, std::uint64_t> numbers;
    std::vector<Frame> frames;
    const auto number_of = [&](const StackFrame& f) {
        const auto [known, is_new] =
            numbers.try_emplace(Frame{f.function, f.file, f.line}, frames.size());
        if (is_new) frames.push_back(known->first);
        return known->second;
    };
    std::vector<std::vector<std::uint64_t>> samples;
    std::uint64_t total = 0;
    for (const auto& stack : stacks.all) {
        auto& sample = samples.emplace_back();
        for (const auto& f : stack.frames) sample.push_back(number_of(f));
        total += stack.weight;
    }

    JsonOutput out;
    out.open_object();
    out.key("$schema").text("https://www.speedscope.app/file-format-schema.json");
    out.key("exporter").text(p.tool);
    out.key("name").text(program_of(p));
    out.key("activeProfileIndex").number(0);
    out.key("shared").open_object();
    out.key("frames").open_array();
    for (const auto& [function, file, line] : frames) {
        out.break_line();
        out.open_object();
        out.key("name").text(function);
        if (!file.empty()) out.key("file").text(file);
        if (line != 0) out.key("line").number(line);
        out.close_object();
    }
    out.close_array();
    out.close_object();
    out.key("profiles").open_array();
    out.open_object();
    out.key("type").text("sampled");
    out.key("name").text(name_of(stacks.weight));
    out.key("unit").text(stacks.weight == Weight::time ? "nanoseconds" : "none");
    out.key("startValue").number(0);
    out.key("endValue").number(total);
    out.key("samples").open_array();
    for (const auto& sample : samples) {
        out.break_line();
        out.open_array();
        for (const auto n : sample) out.number(n);
        out.close_array();
    }
    out.close_array();
    out.key("weights").open_array();
    for (const auto& stack : stacks.all) out.number(stack.weight);
    out.close_array();
    out.close_object();
    out.close_array();
    out.close_object();
    return {out.take() + "\n", std::move(stacks.notes)};
}

}  // namespace shadowprof::report
