// What a thread of the profiler must change in itself before it traces. Private to the room.
#pragma once

namespace shadowprof::ptrace {

// Remembers the signals shadowprof was started with, and sees to it that this thread can wait for
// news of its tracees (wait timer.h).
void prepare_tracing_thread();

// When this thread wakes up, it comes before threads that have been running for a while, whatever
// they are (Linux 6.12). Where all processors are busy it would otherwise have to wait until one of
// them sleeps, and that may be the target: it would never be seen running.
void wake_up_promptly();

// Has the capability to trace any process (of this user namespace), whoever owns it.
bool may_trace_anything();

}  // namespace shadowprof::ptrace
