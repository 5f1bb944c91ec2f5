// Names for code made at run time, as just-in-time compilers publish them for perf: a text file
// /tmp/perf-PID.map with a line "START SIZE NAME" for each function.
//
// Anybody may put such a file there, and a program may write anything into its own. So a file
// counts only if it is the program's user's or root's, and a regular one; no more of it is read
// than a compiler would write, none of it twice; and names are made printable.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "report/views/function_table.h"

namespace shadowprof::report {

class RuntimeNames {
  public:
    RuntimeNames() = default;
    RuntimeNames(std::string path, uid_t owner) : path_(std::move(path)), owner_(owner) {}

    // nullptr if unknown. The file grows while the program runs, and is read on when it has grown.
    // The pointer is valid until the next call.
    const Function* find(std::uint64_t address);

    // Why there are fewer names than the file has; empty if there are not.
    std::string why_not_all();

  private:
    void read_what_is_new();
    void read_on(int file, std::int64_t size);
    void take(std::string_view text);
    void take_line(std::string_view line);

    std::string path_;
    uid_t owner_ = 0;
    std::int64_t looked_to_ = 0;  // how long the file was when it was last read
    std::string unfinished_;      // the beginning of a line whose end was not there yet
    std::map<std::uint64_t, Function> functions_;  // by begin; later lines replace earlier ones
    std::size_t lines_ = 0;
    std::string why_not_all_;
};

}  // namespace shadowprof::report
