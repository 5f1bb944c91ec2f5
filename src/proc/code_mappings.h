// Whether code has come or gone in a process, asked while one of its threads stands still: what
// /proc/PID/maps says of a usual program takes the kernel 50 to 100 µs to write, and is mostly as
// it was. Linux 6.11 and later answer for single mappings (PROCMAP_QUERY).
#pragma once

#include <sys/types.h>

#include "proc/maps.h"

namespace shadowprof::proc {

class CodeMappings {
  public:
    // Of the program that the process executes now.
    explicit CodeMappings(pid_t pid);
    ~CodeMappings();
    CodeMappings(const CodeMappings&) = delete;
    CodeMappings& operator=(const CodeMappings&) = delete;

    // Whether those that are executable are the same as there. False if it has gone.
    bool are_as_in(const Maps& known) const;
    // The kernel can tell.
    static bool can_be_asked();

  private:
    int file_;
};

}  // namespace shadowprof::proc
