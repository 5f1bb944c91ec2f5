#include "report/model/steps.h"

#include <fmt/format.h>

#include "report/text/format.h"

namespace shadowprof::report {

namespace {

std::string range_of(std::uint64_t first, std::uint64_t last, bool hex) {
    const auto text = [&](std::uint64_t n) { return hex ? hex_text(n) : std::to_string(n); };
    return first == last ? text(first) : text(first) + "-" + text(last);
}

std::string offsets_of(const Location& start, const Location& end) {
    const auto base = start.function_offset.value_or(0);
    if (start.offset < base || end.offset < start.offset)
        return range_of(start.offset, std::max(start.offset, end.offset), true);
    const char* sign = start.function_offset ? "+" : "";
    return sign + range_of(start.offset - base, end.offset - base, true);
}

// What is written for a block, after the name of its function.
struct BlockText {
    std::string file;  // empty: the text is a range of offsets
    std::string where;
};

BlockText text_of(const Location& start, const Location& end) {
    if (start.file.empty()) return {{}, offsets_of(start, end)};
    const bool forward = end.file == start.file && end.line > start.line;
    return {file_name(start.file), range_of(start.line, forward ? end.line : start.line, false)};
}

}  // namespace

std::vector<std::string> path_steps(const Profile& profile, const ShownSteps& path) {
    std::vector<std::string> steps;
    std::string function, file, last;
    std::size_t repeated = 1;
    const auto close_repetition = [&] {
        if (repeated > 1) steps.back() += fmt::format(" ×{}", repeated);
        repeated = 1;
    };
    for (const auto& block : path) {
        const auto& start = profile.at(block.first);
        // Without a function the range of offsets says where it is.
        const auto label = start.function_offset ? function_label(profile, start)
                                                 : file_name(profile.modules[start.module].path);
        const auto [block_file, where] = text_of(start, profile.at(block.last));
        const bool same_function = !steps.empty() && label == function;
        if (same_function && block_file == file && where == last) {
            ++repeated;
            continue;
        }
        close_repetition();
        const bool same_file = same_function && block_file == file;
        const auto named = (same_file || block_file.empty() ? "" : block_file + ":") + where;
        if (same_function)
            steps.back().append(", ").append(named);
        else if (named.starts_with('+'))
            steps.push_back(label + named);
        else
            steps.push_back(fmt::format("{} {}", label, named));
        function = label;
        file = block_file;
        last = where;
    }
    close_repetition();
    return steps;
}

std::vector<std::string> stack_steps(const Profile& profile, const ShownSteps& stack) {
    std::vector<std::string> steps;
    for (const auto& frame : stack) {
        const auto& at = profile.at(frame.first);
        steps.push_back(&frame == &stack.back() ? full_label(profile, at)
                                                : function_label(profile, at));
    }
    return steps;
}

}  // namespace shadowprof::report
