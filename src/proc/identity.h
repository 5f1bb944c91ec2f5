// The ids of a thread as the thread itself sees them: as its own namespaces number them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace shadowprof::proc {

struct Identity {
    pid_t pid = 0, tid = 0;
    std::optional<pid_t> parent;  // unknown if the parent's namespace is another
    pid_t group = 0, session = 0;
    uid_t uid = 0, effective_uid = 0, saved_uid = 0;
    gid_t gid = 0, effective_gid = 0, saved_gid = 0;
};

// Nothing if the thread is gone.
std::optional<Identity> identity_of(pid_t pid, pid_t tid);
// From the text of its file "status".
std::optional<Identity> identity_in(std::string_view status);

// Whether the process has the same clocks as the profiler, boot and monotonic clocks included.
bool shares_time_namespace(pid_t pid);

}  // namespace shadowprof::proc
