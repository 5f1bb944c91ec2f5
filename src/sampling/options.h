// sampling: this room decides when a thread is looked at, which one, by which engine, and what that
// may cost the target. It hands the engines' Traces to the profilers, and knows nothing of symbols
// or files.
//
// This file: what the user asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "sampling/schedule/overhead.h"

namespace shadowprof::sampling {

class Allotment;

enum class Mode { automatic, step, burst, shadow, instant, full };

struct Options {
    Mode mode = Mode::step;  // the table of modes is modes/modes.h
    // Instructions a sample has; 0: no samples, the whole program.
    std::uint64_t sample_size = 0;
    // … or, instead, how much of the program's time.
    std::optional<Seconds> sample_time;
    // Every thread that runs takes part in each sample.
    bool all_threads = false;
    // … or a few threads in some samples, for what they share.
    bool looks_at_sharing = false;
    // Replicas have all threads of the program, as far as they can.
    bool replica_threads = false;
    // Replicas are told what their original is told by its calls.
    bool replica_input = false;
    // Samples may be shorter where long ones would miss some of the code more often than the rest.
    bool may_be_shorter = true;
    Overhead overhead{0.01};
    // What may be spent once, soon after the beginning, beyond the budget.
    Seconds stake{0};
    // Of that, what this process of several may cost; if nothing, all of it.
    std::shared_ptr<const Allotment> allotment;
    // Where a timeline is to begin, if not when profiling does.
    std::optional<Clock::time_point> timeline_begins;
    // By the clock only: nobody traces it, and there are no samples.
    bool is_only_looked_at = false;
    // Not by us: whoever did would see children that it has not.
    bool is_started_by_others = false;
    // What is seen of a process is kept apart by the program that it executes.
    bool tells_programs_apart = false;
    // Replicas: the average number of living ones; by default what the idle cores allow.
    std::optional<double> load;
    std::optional<Seconds> period;    // least mean time between samples; the budget may want more
    std::optional<Seconds> duration;  // stop profiling after this
    std::optional<std::uint64_t> most_samples;
    // Stop profiling when the share of every part of the program is known this precisely.
    std::optional<double> precision;
    bool names_threads = false;  // that samples are taken of
    bool tells_states = false;   // … and says where they run, and how they are scheduled
    bool clock = false;          // to be run; see clock/program_clock.h
    std::uint64_t seed = 0;
    bool exhaustive = false;
    // Modes shadow and full: the share of executions whose values are captured.
    double value_fraction = 1.0 / 32;
    // Latency: whether loads can be timed, and how many blocks a replica executes before it times
    // any, so that the caches of its core hold what the program uses, and the pages that it writes
    // are its own. After so many, times no longer change (bench/latency/warm_up.cpp); the page
    // tables of half a gigabyte that is chased through stay cold for the longest.
    bool clock_is_usable = true;
    std::uint64_t warm_up = 196'608;
    std::uint64_t lines_in_last_cache = 0;
    // Latencies were asked for by name: where replicas are dear there are no bursts instead, which
    // cannot measure any.
    bool insists_on_latencies = false;
    // What is learned of code is kept from one run to the next (base/kept_files.h).
    bool keeps_code = true;
    // Mode full: whether the program keeps address space randomisation.
    bool randomise_addresses = false;
};

}  // namespace shadowprof::sampling
