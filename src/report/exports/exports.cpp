#include "report/exports/exports.h"

#include <array>

namespace shadowprof::report {

namespace {

constexpr std::array table{
    Exporter{"collapsed", "stacks, one a line: flamegraph.pl, inferno", export_collapsed},
    Exporter{"speedscope", "stacks: www.speedscope.app", export_speedscope},
    Exporter{"trace", "the timeline: ui.perfetto.dev, speedscope", export_trace},
    Exporter{"pprof", "stacks and instructions: go tool pprof", export_pprof},
    Exporter{"callgrind", "instructions and calls: KCachegrind, callgrind_annotate",
             export_callgrind},
    Exporter{"bolt", "branches by function, fdata: llvm-bolt -data", export_bolt},
    Exporter{"bolt-preaggregated", "branches by address: perf2bolt -pa", export_bolt_preaggregated},
    Exporter{"autofdo", "ranges and branches: create_llvm_prof --profiler=text", export_autofdo},
    Exporter{"llvm-profgen", "the same: llvm-profgen --unsymbolized-profile", export_llvm_profgen},
    Exporter{"llvm", "samples by source line: clang -fprofile-sample-use", export_llvm},
};

}  // namespace

std::span<const Exporter> exporters() {
    return table;
}

}  // namespace shadowprof::report
