// The one spelling of ptrace(2) that this room uses. Private to the room.
#pragma once

#include <sys/ptrace.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace shadowprof::ptrace {

// What ptrace(2) answers: -1 and errno if the thread died or is not stopped.
inline long request(__ptrace_request what, pid_t tid, std::uint64_t address, void* data) {
    return ::ptrace(what, tid, reinterpret_cast<void*>(address), data);
}

inline long request(__ptrace_request what, pid_t tid, std::uint64_t data = 0) {
    return request(what, tid, 0, reinterpret_cast<void*>(data));
}

// A whole file of /proc; empty if it cannot be read, as when the process is gone.
std::string read_proc_file(const std::string& path);
// The same of a list, which the kernel writes page by page: empty also if the process goes before
// its end, which looks like its end.
std::string read_proc_list(const std::string& path);

// The rest of the line of /proc/…/status that begins with `key` and a colon; empty if there is
// none.
std::string status_field(std::string_view status_text, std::string_view key);

}  // namespace shadowprof::ptrace
