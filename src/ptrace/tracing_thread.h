// What a thread of the profiler must change in itself before it traces. Private to the room.
#pragma once

namespace shadowprof::ptrace {

// Remembers the signals that shadowprof was started with, and prepares the calling thread for
// waiting for its tracees (wait_timer.h).
void prepare_tracing_thread();

// Lets the calling thread, when it wakes up, come before all threads that have been running for a
// while (since Linux 6.12). Otherwise, where all processors are busy, it would have to wait until a
// thread sleeps; that may be the target, which would then never be seen running.
void wake_up_promptly();

// Whether we have the capability to trace all processes of this user namespace, of any owner.
bool may_trace_anything();

}  // namespace shadowprof::ptrace
