// What code and data are called and where code was written: functions, variables, source lines,
// inlined calls.
//
// A file is used only if its build id is the module's. Where a name is missing, the answer says
// less but is never wrong: a stripped file still has exported names, or at least the bounds of
// functions in its unwind tables. Any thread may call; calls are answered one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "profile/common/profiler.h"
#include "report/symbols/runtime_names.h"
#include "report/symbols/source_lines.h"
#include "trace/location.h"

namespace shadowprof::report {

struct SymbolOptions {
    std::string root;  // prefix of module paths: /proc/PID/root of a process in a container
    std::vector<std::string> debug_directories = {"/usr/lib/debug"};
    bool keeps_unpacked = false;  // debug files, for the next run (base/kept_files.h)
};

struct FunctionInfo {
    std::string name;  // demangled; empty if only the bounds are known
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

class Symbols {
  public:
    // `beside`: files that it has opened are not opened again, nor by it.
    explicit Symbols(SymbolOptions options = {}, const Symbols* beside = nullptr);
    ~Symbols();

    // Of a process: /tmp/perf-PID.map, and the user whose file it must be.
    void use_runtime_map(const std::string& path, uid_t owner);
    // What a reader of names from there must know; empty if nothing.
    std::string warning();

    // Or the variable, where data are: a location is of one or the other.
    std::optional<FunctionInfo> function_at(const trace::Module& module, std::uint64_t offset);
    SourceLine line_at(const trace::Module& module, std::uint64_t offset);
    // Whether a function begins there, in a file with debug information.
    bool is_described_function(const trace::Module& module, std::uint64_t offset);
    // Of the function that begins there, those that are known to be passed in integer registers.
    std::vector<PassedParameter> parameters_at(const trace::Module& module, std::uint64_t offset);

    // For listings: every function of the module, and code from its file; empty without the file.
    std::vector<FunctionInfo> functions_of(const trace::Module& module);
    std::vector<std::byte> code_of(const trace::Module& module, std::uint64_t offset,
                                   std::size_t size);
    // Whether the running program may write there. It may write data, but neither constants nor
    // tables that only the dynamic linker writes. Nothing without the file.
    std::optional<bool> is_writable(const trace::Module& module, std::uint64_t offset);

  private:
    struct File;
    struct Files;
    File* file_of(const trace::Module& module);
    static SourceLines& lines_of(File& file);

    std::shared_ptr<Files> files_;
    SymbolOptions options_;
    RuntimeNames runtime_names_;
};

// Finds functions for the profilers, which do not know symbols.
class SymbolFunctionMap : public profile::FunctionMap {
  public:
    SymbolFunctionMap(Symbols& symbols, const trace::ModuleTable& modules)
        : symbols_(symbols), modules_(modules) {}
    trace::Location function_of(trace::Location location) override;
    trace::Location place_to_tell(trace::Location location) override;
    bool wants_arguments_at(const trace::Location& place) const override;
    // Frees the memory that earlier calls have taken.
    void forget();

  private:
    Symbols& symbols_;
    const trace::ModuleTable& modules_;
    std::mutex mutex_;
    std::unordered_map<trace::Location, trace::Location, trace::LocationHash> known_;
};

}  // namespace shadowprof::report
