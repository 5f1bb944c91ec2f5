// What a thread of the profiler must change in itself before it traces. Private to the room.
#pragma once

namespace shadowprof::ptrace {

// Remembers the signals shadowprof was started with, and sees to it that news of tracees (SIGCHLD)
// reaches this thread when it waits for them.
void prepare_tracing_thread();

// Has the capability to trace any process (of this user namespace), whoever owns it.
bool may_trace_anything();

}  // namespace shadowprof::ptrace
