// What a profile says besides its sections: which program ran on which machine, how it was
// profiled and at what cost, and the places in its code that sections refer to by number. Each
// struct's table of fields makes its part of the profile file.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/fields.h"

namespace shadowprof::model {

struct Host {
    std::string cpu;
    std::uint32_t cores = 0;
    std::string kernel;
    auto operator<=>(const Host&) const = default;

    static constexpr auto fields() {
        return std::tuple(field("cpu", &Host::cpu), field("cores", &Host::cores),
                          field("kernel", &Host::kernel));
    }
};

struct Target {
    std::vector<std::string> command;
    std::int64_t pid = 0;
    std::optional<std::int32_t> exit;  // as a shell shows it; nothing if it was still running
    bool attached = false;
    bool operator==(const Target&) const = default;

    static constexpr auto fields() {
        return std::tuple(field("command", &Target::command), field("pid", &Target::pid),
                          field("exit", &Target::exit), field("attached", &Target::attached));
    }
};

// A command that was given while the program ran.
struct ControlCommand {
    double time = 0;  // seconds after profiling began
    std::string command;
    bool operator==(const ControlCommand&) const = default;

    static constexpr auto fields() {
        return std::tuple(field("time", &ControlCommand::time),
                          field("command", &ControlCommand::command));
    }
};

// What sampling was allowed to cost.
struct Budget {
    double overhead = 0;  // of the program's time: 0.01 is 1 %
    double stake = 0;     // seconds
    bool operator==(const Budget&) const = default;

    static constexpr auto fields() {
        return std::tuple(field("overhead", &Budget::overhead), field("stake", &Budget::stake));
    }
};

struct Run {
    std::string mode;
    std::vector<std::string> profiles;
    std::map<std::string, std::string> options;
    std::optional<Budget> budget;  // nothing where the whole program was followed, and in old files
    bool is_whole = false;         // the program was followed all the time: nothing is a sample
    std::uint64_t seed = 0;
    std::string started;                     // ISO 8601, UTC
    double duration = 0;                     // seconds
    std::optional<std::string> interrupted;  // what cut profiling short, if something did
    std::optional<std::string> sampling;     // which kinds of samples were taken, and why
    std::map<std::string, double> stood_in;  // seconds that other modes took the samples, by mode
    std::vector<std::string> warnings;       // what a reader of the numbers must know
    std::vector<std::string> failures;       // of profiling, never of the program
    std::vector<std::uint64_t> seeds;        // of a merged profile: of each run
    std::vector<ControlCommand> control;     // see --control
    std::uint64_t runs() const { return seeds.empty() ? 1 : seeds.size(); }
    bool operator==(const Run&) const = default;

    static constexpr auto fields() {
        return std::tuple(field("mode", &Run::mode), field("profiles", &Run::profiles),
                          field("options", &Run::options),
                          field<IfSet<Json<Budget>>>("budget", &Run::budget).unless_empty(),
                          field("whole", &Run::is_whole).unless_empty(),
                          field<Hex>("seed", &Run::seed),
                          field<ListOf<Hex>>("seeds", &Run::seeds).unless_empty(),
                          field("started", &Run::started), field("duration", &Run::duration),
                          field("interrupted", &Run::interrupted).optional(),
                          field("sampling", &Run::sampling).unless_empty(),
                          field("stood_in", &Run::stood_in).unless_empty(),
                          field("warnings", &Run::warnings).optional(),
                          field("failures", &Run::failures).optional(),
                          field("control", &Run::control).unless_empty());
    }
};

// What profiling cost the target.
struct Cost {
    std::uint64_t stops = 0;
    double stop_time = 0;  // seconds
    std::uint64_t forks = 0;
    std::uint64_t extra_faults = 0;
    double extra_cpu = 0;                 // seconds, of shadowprof and replicas, on whichever core
    std::optional<double> slowdown;       // added run time over its own: 0.01 is 1 %
    std::map<std::string, double> parts;  // of the slowdown, by cause
    bool operator==(const Cost&) const = default;

    static constexpr auto fields() {
        return std::tuple(field("stops", &Cost::stops), field("stop_time", &Cost::stop_time),
                          field("forks", &Cost::forks), field("extra_faults", &Cost::extra_faults),
                          field("extra_cpu", &Cost::extra_cpu).optional(),
                          field<IfSet<Json<double>>>("slowdown", &Cost::slowdown).unless_empty(),
                          field("parts", &Cost::parts).unless_empty());
    }
};

struct Coverage {
    std::uint64_t samples = 0;
    std::uint64_t instructions = 0;
    std::uint64_t blocks = 0;
    std::map<std::string, std::uint64_t> ended;  // why samples ended
    // The instructions of each sample times its weight, which is what the counts of the hotlists
    // are shares of. Older profiles lack it.
    std::optional<std::uint64_t> weighted_instructions;
    bool operator==(const Coverage&) const = default;

    static constexpr auto fields() {
        return std::tuple(field("samples", &Coverage::samples),
                          field("instructions", &Coverage::instructions),
                          field("blocks", &Coverage::blocks),
                          field<IfSet<Json<std::uint64_t>>>("weighted_instructions",
                                                            &Coverage::weighted_instructions)
                              .unless_empty(),
                          field("ended", &Coverage::ended));
    }
};

struct Module {
    std::string path;
    std::string build_id;  // empty if it has none
    bool operator==(const Module&) const = default;

    static constexpr auto fields() {
        return std::tuple(field("path", &Module::path), field("build_id", &Module::build_id));
    }
};

using ModuleIndex = std::uint32_t;
using LocationIndex = std::uint32_t;

// A function that the compiler expanded in place, and the line that called it.
struct InlinedFrame {
    std::string function;
    std::string file;
    std::uint32_t line = 0;
    bool operator==(const InlinedFrame&) const = default;

    static constexpr auto fields() {
        return std::tuple(field("function", &InlinedFrame::function),
                          field("file", &InlinedFrame::file), field("line", &InlinedFrame::line));
    }
};

// A parameter of a function that is passed in an integer register.
struct Parameter {
    enum class Kind : std::uint8_t { signed_number, unsigned_number, pointer, boolean, character };
    friend constexpr auto names_of(Kind) {
        using enum Kind;
        return std::array{std::pair{signed_number, "signed"},
                          std::pair{unsigned_number, "unsigned"}, std::pair{pointer, "pointer"},
                          std::pair{boolean, "boolean"}, std::pair{character, "character"}};
    }
    std::string name;
    Kind kind{};
    std::uint32_t bits = 64;
    std::map<std::string, std::int64_t> enumerators;  // of an enumeration
    auto operator<=>(const Parameter&) const = default;

    static constexpr auto fields() {
        return std::tuple(field("name", &Parameter::name),
                          field<Named<Kind>>("kind", &Parameter::kind),
                          field("bits", &Parameter::bits),
                          field("enumerators", &Parameter::enumerators).unless_empty());
    }
};

struct Location {
    ModuleIndex module = 0;
    std::uint64_t offset = 0;   // link-time address
    std::uint64_t content = 0;  // which code it was, for code made at run time; else 0
    // A return address stands for the call before it: function and line are those of the call.
    bool return_address = false;
    std::string function;                          // empty if no symbol names it
    std::optional<std::uint64_t> function_offset;  // where the function begins
    std::string file;                              // empty if there is no debug information
    std::uint32_t line = 0;
    std::vector<InlinedFrame> inlined;  // innermost first
    std::string text;                   // of the instruction; empty if it was never seen
    // Of the function that begins here, if a sample has arguments of it: what these are.
    std::vector<Parameter> parameters;
    bool operator==(const Location&) const = default;

    static constexpr auto fields() {
        return std::tuple(
            field("module", &Location::module), field<Hex>("offset", &Location::offset),
            field<Hex>("content", &Location::content).unless_empty(),
            field("return_address", &Location::return_address).unless_empty(),
            field("function", &Location::function).unless_empty(),
            field<IfSet<Hex>>("function_offset", &Location::function_offset).unless_empty(),
            field("file", &Location::file).unless_empty(),
            field("line", &Location::line).unless_empty(),
            field("inlined", &Location::inlined).unless_empty(),
            field("text", &Location::text).unless_empty(),
            field("parameters", &Location::parameters).unless_empty());
    }
};

// One of several processes, and the program that it executed: a process that executes another one
// is two of these.
struct Process {
    std::int64_t pid = 0;     // 0: several, of merged profiles
    std::int64_t parent = 0;  // its pid
    std::uint64_t count = 1;  // of them
    std::string program;      // path
    std::string name;         // as it calls itself
    double start = 0;         // seconds since profiling began
    std::optional<double> end;
    double cpu = 0;  // seconds on a processor
    std::uint64_t samples = 0;
    std::map<std::string, double> threads;  // by name: seconds on a processor
    std::optional<std::string> not_seen;    // why there are no samples of it
    // What was seen of it, alone or together with others of its program.
    std::optional<std::uint32_t> part;
    bool operator==(const Process&) const = default;

    static constexpr auto fields() {
        return std::tuple(
            field("pid", &Process::pid), field("parent", &Process::parent),
            field("count", &Process::count).optional(), field("program", &Process::program),
            field("name", &Process::name), field("start", &Process::start),
            field<IfSet<Json<double>>>("end", &Process::end).unless_empty(),
            field("cpu", &Process::cpu).about("seconds on a processor"),
            field("samples", &Process::samples), field("threads", &Process::threads).optional(),
            field("not_seen", &Process::not_seen).unless_empty(),
            field<IfSet<Json<std::uint32_t>>>("part", &Process::part)
                .unless_empty()
                .about("index into parts"));
    }
};

// Too short to be told of one by one.
struct OtherProcesses {
    std::uint64_t count = 0;  // at least
    double cpu = 0;           // seconds on a processor
    bool operator==(const OtherProcesses&) const = default;

    static constexpr auto fields() {
        return std::tuple(field("count", &OtherProcesses::count).about("at least"),
                          field("cpu", &OtherProcesses::cpu));
    }
};

// What only those who ran the program know.
struct RunFacts {
    std::string tool;  // "shadowprof 0.1.0"
    Host host;
    std::vector<Target> targets;
    Run run;
    Cost cost;
    Coverage coverage;
    std::vector<Host> hosts;  // of a merged profile: of each machine
    bool operator==(const RunFacts&) const = default;
};

// Without its directories; safe to print.
std::string file_name(const std::string& path);

}  // namespace shadowprof::model
