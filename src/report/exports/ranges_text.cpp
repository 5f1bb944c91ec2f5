// Ranges and branches as text: the form into which create_llvm_prof and llvm-profgen bring LBR
// records before they read the binary. Both count the ranges, list them, and then the branches; the
// former has counts of single addresses between the two. Addresses are link-time ones.
#include <fmt/format.h>

#include <iterator>

#include "report/exports/branches.h"
#include "report/exports/exports.h"

namespace shadowprof::report {

namespace {

bool is_taken(const ModuleBranch& b) {
    return b.kind != EdgeKind::fallthrough && b.from_inside && b.to_inside;
}

Exported ranges_and_branches(const Profile& p, const ExportOptions& options, const char* between) {
    const ModuleBranches branches(p, options.module);
    Exported out{{}, branches.notes()};
    auto to = std::back_inserter(out.text);
    const auto ranges = branches.ranges();
    fmt::format_to(to, "{}\n", ranges.size());
    for (const auto& r : ranges) fmt::format_to(to, "{:x}-{:x}:{}\n", r.begin, r.last, r.count);
    out.text += between;
    std::size_t taken = 0;
    std::string lines;
    for (const auto& b : branches.all()) {
        if (!is_taken(b)) continue;
        ++taken;
        fmt::format_to(std::back_inserter(lines), "{:x}->{:x}:{}\n", b.from, b.to, b.count);
    }
    fmt::format_to(to, "{}\n", taken);
    out.text += lines;
    return out;
}

}  // namespace

Exported export_autofdo(const Profile& p, const ExportOptions& options) {
    return ranges_and_branches(p, options, "0\n");
}

Exported export_llvm_profgen(const Profile& p, const ExportOptions& options) {
    auto out = ranges_and_branches(p, options, "");
    out.notes.emplace_back("addresses are those of the file: llvm-profgen --use-offset=0");
    return out;
}

}  // namespace shadowprof::report
