// What `run` and `attach` share: their options, and the way from a target to a profile file.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine/cache_geometry.h"
#include "profile/rule/rule.h"
#include "sampling/session.h"

namespace shadowprof::cli {

struct ProfilingOptions {
    std::string output = "shadowprof.json";
    std::string mode;  // empty: the default
    std::vector<std::string> profiles;
    std::optional<std::uint64_t> sample_size;
    std::optional<double> sample_time;  // seconds, instead
    bool all_threads = false;
    bool replica_threads = false, replica_input = false;
    double overhead = 0.01;
    double stake = 0;  // seconds
    std::optional<double> load;
    std::optional<double> period;
    std::optional<double> duration;
    std::optional<std::uint64_t> most_samples;
    std::optional<double> precision;
    bool exhaustive = false;
    profile::StateKeys value_by;
    std::size_t kept_samples = 0;
    std::vector<profile::Rule> rules;
    std::vector<std::string> modules;  // FILE[:ARGS] or NAME[:ARGS]
    std::string control;               // fifo:CTL[,ACK]; empty: none
    std::optional<std::array<machine::CacheGeometry::Level, 3>> caches;
    bool aslr = false;
    bool no_cache = false;
    std::uint64_t limit = 1000;
    std::optional<std::uint64_t> seed;
    bool quiet = false;
    bool verbose = false;
    bool no_progress = false;
    bool no_follow = false;

    void add_to(CLI::App& command);
    // Throws UserError if two have one name.
    void add_rules(std::vector<profile::Rule> more);

  private:
    // In the order of the help.
    void add_choices(CLI::App& command);
    void add_samples(CLI::App& command);
    void add_budget(CLI::App& command);
    void add_ways(CLI::App& command);
    void add_values(CLI::App& command);
    void add_rules_and_modules(CLI::App& command);
    void add_output(CLI::App& command);
};

struct Profiled {
    sampling::Ending ending;
    bool is_written = false;  // the profile is where it was to be
};

// Profiles the target and writes the profile.
Profiled profile_target(const ProfilingOptions& options, sampling::Target target);

// The status a shell would show: the exit code, or 128 + signal.
int shell_status(int wait_status);

}  // namespace shadowprof::cli
