// The ways of sampling: a table with a row for each mode. Whatever else needs to know of modes
// (options and their checks, help, completions) reads it here. A new mode is a row; what it does
// with a thread is a kind of sample (sampling/schedule/sample_kind.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sampling/options.h"
#include "sampling/sampling.h"

namespace shadowprof::sampling {

struct ModeRow {
    Mode mode;
    const char* name;
    const char* help;  // a clause
    // Instructions that a sample has by default, and where load latencies are what is asked for; 0:
    // no samples are taken.
    std::uint64_t sample_size = 0, sample_size_for_latencies = 0;

    // What it can capture.
    bool times_loads = false;       // how long loads take
    bool captures_a_share = false;  // values of a share of executions only, unless --exhaustive
    // What it does to the program.
    bool forks = false;             // makes replicas of it
    bool holds = false;             // keeps a thread stopped while it looks at it
    bool injects = false;           // puts code into it
    bool asks_where_it_is = false;  // … and translates what is there before it is executed
    bool runs_in_place = false;     // its threads go through samples themselves
    // Samples may be given in time, and all threads may take part in one.
    bool has_windows = false;
    // Two runs see the same: nothing random matters, addresses are fixed by default, and the
    // program waits for whoever reads what it does.
    bool is_repeatable = false;

    // Looks at threads for a sample at a time; and follows all of them from beginning to end, when
    // the sample size is 0. Either may be impossible.
    std::unique_ptr<Sampling> (*sample)(SamplerContext) = nullptr;
    std::unique_ptr<Sampling> (*follow_everything)(SamplerContext) = nullptr;
};

// The default comes first.
std::span<const ModeRow> modes();
const ModeRow& row_of(Mode mode);
// Nothing if there is none of this name.
const ModeRow* mode_named(std::string_view name);
// "shadow or full": those for which that holds. A member of the row says it as well.
std::string names_of_modes(const std::function<bool(const ModeRow&)>& holds);

// All is seen that the program does; otherwise samples are taken.
bool follows_everything(const Options& options);
std::unique_ptr<Sampling> make_sampling(SamplerContext place);

}  // namespace shadowprof::sampling
