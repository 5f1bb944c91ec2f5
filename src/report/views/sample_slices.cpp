#include "report/views/sample_slices.h"

namespace shadowprof::report {

std::vector<CallSlice> slices_of(const Profile& p, const profile::ThreadOfSample& thread) {
    std::vector<CallSlice> slices;
    std::vector<std::size_t> open;  // by depth
    std::uint64_t now = 0;
    const auto close_down_to = [&](std::size_t depth) {
        for (; open.size() > depth; open.pop_back())
            slices[open.back()].length = now - slices[open.back()].begin;
    };
    for (const auto* stretch : thread.stretches) {
        auto depth = static_cast<std::size_t>(stretch->depth);
        for (const auto& function : stretch->frames) {
            // What it returned to is still open.
            if (depth >= open.size() || slices[open[depth]].function != function) {
                close_down_to(depth);
                open.push_back(slices.size());
                slices.push_back({function, open.size() - 1, now, 0, {}});
                if (&function == &stretch->frames.back())
                    slices.back().arguments = arguments_of(p.at(function), stretch->arguments);
            }
            ++depth;
        }
        close_down_to(depth);
        now += stretch->instructions;
    }
    close_down_to(0);
    return slices;
}

}  // namespace shadowprof::report
