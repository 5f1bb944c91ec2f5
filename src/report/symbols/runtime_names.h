// Names for code made at run time, as just-in-time compilers publish them for perf: a text file
// /tmp/perf-PID.map with a line "START SIZE NAME" for each function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/views/function_table.h"

namespace shadowprof::report {

class RuntimeNames {
  public:
    explicit RuntimeNames(std::string path) : path_(std::move(path)) {}

    // nullptr if unknown. The file grows while the program runs, and is read again when it has
    // grown. The pointer is valid until the next call.
    const Function* find(std::uint64_t address);

  private:
    void read_what_is_new();

    std::string path_;
    std::uint64_t read_to_ = 0;
    std::vector<Function> functions_;  // by begin; later lines replace earlier ones
};

}  // namespace shadowprof::report
