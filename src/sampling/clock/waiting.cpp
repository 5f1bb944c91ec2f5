#include "sampling/clock/waiting.h"

#include <linux/futex.h>
#include <sys/stat.h>

#include "emu/syscalls/table.h"
#include "proc/call_facts.h"
#include "proc/open_files.h"

namespace shadowprof::sampling {

namespace {

using profile::ThreadState;

ThreadState state_of_file(pid_t pid, int descriptor) {
    const auto status = proc::status_of_descriptor(pid, descriptor);
    if (!status) return ThreadState::other;
    if (S_ISSOCK(status->st_mode)) return ThreadState::socket;
    if (S_ISFIFO(status->st_mode)) return ThreadState::pipe;
    // Of no file system: eventfd, timerfd, inotify …
    if ((status->st_mode & S_IFMT) == 0) return ThreadState::events;
    return ThreadState::file;
}

// The kernel does not know what a futex is. But a lock that somebody has and others want has
// values that nothing else has: 2 (glibc's, Rust's and Go's mutexes), 2 or 3 (glibc's locks for
// readers and writers), or negative ones (libgomp's, musl's, and those with the owner's number in
// them). Else it is waited for a condition, a semaphore, the end of a thread, or work.
ThreadState state_of_futex(const proc::CallOfSleeper& call) {
    const auto operation = static_cast<int>(call.arguments[1]) & FUTEX_CMD_MASK;
    const auto expected = static_cast<std::int32_t>(call.arguments[2]);
    const bool hands_over =
        operation == FUTEX_LOCK_PI || operation == FUTEX_LOCK_PI2 || operation == FUTEX_TRYLOCK_PI;
    const bool is_lock = hands_over || expected < 0 || expected == 2 ||
                         (operation == FUTEX_WAIT_BITSET && expected == 3);
    return is_lock ? ThreadState::lock : ThreadState::wakeup;
}

}  // namespace

ThreadState state_in(pid_t pid, const proc::CallOfSleeper& call) {
    if (call.number == -1) return ThreadState::file;  // a page is being read
    const auto [what, argument] = proc::facts_of_call(call.number).sleeps;
    switch (what) {
        using enum proc::Sleep::For;
        case descriptor:
            return state_of_file(pid, static_cast<int>(call.arguments[argument]));
        case events_if_any:
            return call.arguments[argument] == 0 ? ThreadState::sleep : ThreadState::events;
        case futex:
            return state_of_futex(call);
        case events:
            return ThreadState::events;
        case wakeup:
            return ThreadState::wakeup;
        case lock:
            return ThreadState::lock;
        case time:
            return ThreadState::sleep;
        case child:
            return ThreadState::child;
        case socket:
            return ThreadState::socket;
        case file:
            return ThreadState::file;
        case other:
            break;
    }
    return ThreadState::other;
}

std::string name_of_call(std::int64_t number) {
    if (number < 0) return "page fault";
    const auto* const row = emu::find_system_call(static_cast<std::int32_t>(number));
    return row ? std::string(row->name) : std::to_string(number);
}

}  // namespace shadowprof::sampling
