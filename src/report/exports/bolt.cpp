// Branches for BOLT, in both of its formats.
//
// fdata names functions, "1 SYMBOL OFFSET" for either end of a branch ("0 [unknown] 0" outside),
// then mispredictions and the count; branches that were not taken are listed like others, and so is
// code that runs on into a block to which something else jumps. The pre-aggregated one has
// addresses: "B FROM TO COUNT MISPREDICTED" for branches that were taken, and "F BEGIN END COUNT"
// for code that ran through from one to the other.
#include <fmt/format.h>

#include <iterator>

#include "model/utf8.h"
#include "report/exports/binary_names.h"
#include "report/exports/branches.h"
#include "report/exports/exports.h"
#include "report/exports/run_ons.h"

namespace shadowprof::report {

namespace {

// As BOLT escapes names. Those that are not printable it does not find in the binary, and skips.
std::string escaped(const std::string& name) {
    std::string out;
    for (const char c : printable(name)) {
        if (c == ' ' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string end_of(const BinaryNames& names, std::uint64_t address, bool inside) {
    const auto* f = inside ? names.at(address) : nullptr;
    return f ? fmt::format("1 {} {:x}", escaped(f->bolt_name), address - f->begin)
             : "0 [unknown] 0";
}

}  // namespace

Exported export_bolt(const Profile& p, const ExportOptions& options) {
    const ModuleBranches branches(p, options.module);
    const BinaryNames names(branches.module(), options.symbols);
    Exported out{{}, branches.notes()};
    for (const auto& b : branches.all()) {
        // BOLT infers returns from calls.
        if (b.kind == EdgeKind::return_) continue;
        const auto from = end_of(names, b.from, b.from_inside);
        const auto to = end_of(names, b.to, b.to_inside);
        if (from[0] == '0' && to[0] == '0') continue;
        fmt::format_to(std::back_inserter(out.text), "{} {} 0 {}\n", from, to, b.count);
    }
    for (const auto& r : run_ons(branches, names))
        fmt::format_to(std::back_inserter(out.text), "{} {} 0 {}\n", end_of(names, r.last, true),
                       end_of(names, r.next, true), r.count);
    return out;
}

Exported export_bolt_preaggregated(const Profile& p, const ExportOptions& options) {
    const ModuleBranches branches(p, options.module);
    Exported out{{}, branches.notes()};
    auto to = std::back_inserter(out.text);
    for (const auto& b : branches.all()) {
        if (b.kind == EdgeKind::fallthrough)
            fmt::format_to(to, "F {:x} {:x} {}\n", b.from, b.to, b.count);
        else
            fmt::format_to(to, "B {:x} {:x} {} 0\n", b.from_inside ? b.from : 0,
                           b.to_inside ? b.to : 0, b.count);
    }
    for (const auto& r : branches.ranges())
        fmt::format_to(to, "F {:x} {:x} {}\n", r.begin, r.last, r.count);
    return out;
}

}  // namespace shadowprof::report
