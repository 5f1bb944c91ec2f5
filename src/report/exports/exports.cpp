#include "report/exports/exports.h"

#include <array>

namespace shadowprof::report {

namespace {

constexpr bool weighted = true, not_weighted = false;

constexpr std::array table{
    Exporter{"collapsed", "stacks, one a line: flamegraph.pl, inferno", weighted, export_collapsed},
    Exporter{"speedscope", "stacks: www.speedscope.app", weighted, export_speedscope},
    Exporter{"trace", "the timeline: ui.perfetto.dev, profiler.firefox.com, speedscope", weighted,
             export_trace},
    Exporter{"pprof", "stacks, time and instructions: go tool pprof", weighted, export_pprof},
    Exporter{"callgrind", "costs and calls: KCachegrind, callgrind_annotate", weighted,
             export_callgrind},
    Exporter{"bolt", "branches by function, fdata: llvm-bolt -data", not_weighted, export_bolt},
    Exporter{"bolt-preaggregated", "branches by address: perf2bolt -pa", not_weighted,
             export_bolt_preaggregated},
    Exporter{"autofdo", "ranges and branches: create_llvm_prof --profiler=text", not_weighted,
             export_autofdo},
    Exporter{"llvm-profgen", "the same: llvm-profgen --unsymbolized-profile", not_weighted,
             export_llvm_profgen},
    Exporter{"llvm", "samples by source line: clang -fprofile-sample-use", not_weighted,
             export_llvm},
};

}  // namespace

std::span<const Exporter> exporters() {
    return table;
}

}  // namespace shadowprof::report
