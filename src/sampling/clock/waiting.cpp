#include "sampling/clock/waiting.h"

#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "emu/syscalls/table.h"
#include "proc/open_files.h"

namespace shadowprof::sampling {

namespace {

using profile::ThreadState;

// By the descriptor that the first argument is.
ThreadState state_of_file(pid_t pid, const proc::CallOfSleeper& call) {
    const auto status = proc::status_of_descriptor(pid, static_cast<int>(call.arguments[0]));
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

ThreadState events_or_sleep(std::uint64_t descriptors) {
    return descriptors == 0 ? ThreadState::sleep : ThreadState::events;
}

}  // namespace

ThreadState state_in(pid_t pid, const proc::CallOfSleeper& call) {
    switch (call.number) {
        case -1:  // a page is being read
            return ThreadState::file;
        case SYS_futex:
            return state_of_futex(call);
        case SYS_futex_waitv:
            return ThreadState::wakeup;
        case SYS_semop:
        case SYS_semtimedop:
        case SYS_flock:
        case SYS_fcntl:
            return ThreadState::lock;
        case SYS_nanosleep:
        case SYS_clock_nanosleep:
            return ThreadState::sleep;
        case SYS_poll:
        case SYS_ppoll:
            return events_or_sleep(call.arguments[1]);
        case SYS_select:
        case SYS_pselect6:
            return events_or_sleep(call.arguments[0]);
        case SYS_epoll_wait:
        case SYS_epoll_pwait:
        case SYS_epoll_pwait2:
        case SYS_io_uring_enter:
        case SYS_io_getevents:
            return ThreadState::events;
        case SYS_wait4:
        case SYS_waitid:
        case SYS_vfork:
            return ThreadState::child;
        case SYS_accept:
        case SYS_accept4:
        case SYS_connect:
        case SYS_recvfrom:
        case SYS_recvmsg:
        case SYS_recvmmsg:
        case SYS_sendto:
        case SYS_sendmsg:
        case SYS_sendmmsg:
            return ThreadState::socket;
        case SYS_read:
        case SYS_readv:
        case SYS_pread64:
        case SYS_preadv:
        case SYS_preadv2:
        case SYS_write:
        case SYS_writev:
        case SYS_pwrite64:
        case SYS_pwritev:
        case SYS_pwritev2:
        case SYS_splice:
        case SYS_sendfile:
        case SYS_ioctl:
            return state_of_file(pid, call);
        case SYS_fsync:
        case SYS_fdatasync:
        case SYS_sync_file_range:
        case SYS_msync:
        case SYS_open:
        case SYS_openat:
        case SYS_stat:
        case SYS_newfstatat:
        case SYS_getdents64:
        case SYS_unlink:
        case SYS_unlinkat:
        case SYS_rename:
        case SYS_ftruncate:
        case SYS_fallocate:
        case SYS_close:
            return ThreadState::file;
        default:
            return ThreadState::other;
    }
}

std::string name_of_call(std::int64_t number) {
    if (number < 0) return "page fault";
    const auto* const row = emu::find_system_call(static_cast<std::int32_t>(number));
    return row ? std::string(row->name) : std::to_string(number);
}

}  // namespace shadowprof::sampling
