// "main;parse;number 12": each line is a stack, outermost first, and its weight.
#include <fmt/format.h>

#include <iterator>
#include <map>

#include "model/utf8.h"
#include "report/exports/exports.h"
#include "report/exports/weighted_stacks.h"

namespace shadowprof::report {

namespace {

// Spaces may stay: the weight follows the last one.
std::string word(const std::string& name) {
    return model::printable_word(name, ";", ':');
}

}  // namespace

Exported export_collapsed(const Profile& p, const ExportOptions& options) {
    auto stacks = stacks_to_show(p, options.weight);
    std::map<std::string, std::uint64_t> lines;
    for (const auto& stack : stacks.all) {
        std::string line;
        for (const auto& f : stack.frames) line += (line.empty() ? "" : ";") + word(f.function);
        lines[line] += stack.weight;
    }
    Exported out{{}, std::move(stacks.notes)};
    for (const auto& [line, weight] : lines)
        fmt::format_to(std::back_inserter(out.text), "{} {}\n", line, weight);
    return out;
}

}  // namespace shadowprof::report
