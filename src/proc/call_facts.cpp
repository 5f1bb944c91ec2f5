#include "proc/call_facts.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/page.h"

namespace shadowprof::proc {

namespace {

using enum ChangesMappings;
using enum Sleep::For;
using enum Division::If;
using enum Division::Unit;
using enum NewDescriptor::From;
using enum NewDescriptor::ClosesOnExec;
using Timeout = Interruption::Timeout;
using Size = Writing::Size;

constexpr Interruption receiving{Timeout::of_receiving, 0, -EAGAIN},
    sending{Timeout::of_sending, 0, -EAGAIN};
constexpr std::uint8_t size_of_action = 32;  // the kernel's

// Interruptions are those of signal(7), "Interruption of system calls and library functions by stop
// signals", with the calls that came since.
// clang-format off
constexpr CallFacts rows[] = {
    {.number = SYS_read, .sleeps = {descriptor}, .resumes = true, .interruption = receiving, .division = {byte, from_endless_device, 2, 1}},
    {.number = SYS_write, .sleeps = {descriptor}, .resumes = true, .interruption = sending, .division = {byte, to_stream, 2, 1}},
    {.number = SYS_open, .sleeps = {file}, .descriptor = {opening, by_flags, 1}},
    {.number = SYS_close, .sleeps = {file}},
    {.number = SYS_stat, .sleeps = {file}},
    {.number = SYS_poll, .sleeps = {events_if_any, 1}, .resumes = true},
    {.number = SYS_mmap, .changes_mappings = at_result},
    {.number = SYS_mprotect, .changes_mappings = at_argument},
    {.number = SYS_munmap, .changes_mappings = at_argument},
    {.number = SYS_rt_sigaction, .writes = {Size::fixed, 2, size_of_action}},
    {.number = SYS_rt_sigreturn, .returns_elsewhere = true},
    {.number = SYS_ioctl, .sleeps = {descriptor}},
    {.number = SYS_pread64, .sleeps = {descriptor}, .division = {byte, from_endless_device, 2, 1}},
    {.number = SYS_pwrite64, .sleeps = {descriptor}},
    {.number = SYS_readv, .sleeps = {descriptor}, .interruption = receiving, .division = {piece, from_endless_device, 2, 1}},
    {.number = SYS_writev, .sleeps = {descriptor}, .interruption = sending, .division = {piece, to_stream, 2, 1}},
    {.number = SYS_select, .sleeps = {events_if_any, 0}, .resumes = true},
    {.number = SYS_mremap, .changes_mappings = moves},
    {.number = SYS_msync, .sleeps = {file}},
    {.number = SYS_mincore, .writes = {Size::pages, 2, 1}},
    {.number = SYS_shmat, .changes_mappings = anywhere},
    {.number = SYS_dup, .descriptor = {duplicating}},
    {.number = SYS_dup2, .descriptor = {duplicating}},
    {.number = SYS_nanosleep, .sleeps = {time}, .resumes = true},
    {.number = SYS_sendfile, .sleeps = {descriptor}, .division = {byte, to_no_pipe, 3}},
    {.number = SYS_connect, .sleeps = {socket}, .interruption = {Timeout::of_sending, 0, -EINPROGRESS}},
    {.number = SYS_accept, .sleeps = {socket}, .resumes = true, .interruption = receiving},
    {.number = SYS_sendto, .sleeps = {socket}, .interruption = sending, .division = {byte, to_stream, 2, 1}},
    {.number = SYS_recvfrom, .sleeps = {socket}, .interruption = receiving, .division = {byte, waits_for_all, 2, 1}},
    {.number = SYS_sendmsg, .sleeps = {socket}, .interruption = sending},
    {.number = SYS_recvmsg, .sleeps = {socket}, .interruption = receiving},
    {.number = SYS_vfork, .sleeps = {child}},
    {.number = SYS_execve, .returns_elsewhere = true},
    {.number = SYS_exit, .returns_elsewhere = true},
    {.number = SYS_wait4, .sleeps = {child}, .resumes = true},
    {.number = SYS_semop, .sleeps = {lock}, .interruption = {Timeout::none}},
    {.number = SYS_shmdt, .changes_mappings = anywhere},
    {.number = SYS_fcntl, .sleeps = {lock}, .descriptor = {duplicating, by_command, 1}},
    {.number = SYS_flock, .sleeps = {lock}},
    {.number = SYS_fsync, .sleeps = {file}},
    {.number = SYS_fdatasync, .sleeps = {file}},
    {.number = SYS_ftruncate, .sleeps = {file}},
    {.number = SYS_getdents, .writes = {Size::bytes, 1, 2}},
    {.number = SYS_getcwd, .writes = {Size::bytes, 0, 1}},
    {.number = SYS_rename, .sleeps = {file}},
    {.number = SYS_unlink, .sleeps = {file}},
    {.number = SYS_readlink, .writes = {Size::bytes, 1, 2}},
    {.number = SYS_getgroups, .writes = {Size::groups, 1, 0}},
    {.number = SYS_rt_sigtimedwait, .interruption = {Timeout::timespec, 2, -EAGAIN}},
    {.number = SYS_sigaltstack, .writes = {Size::fixed, 1, sizeof(stack_t)}},
    {.number = SYS_getxattr, .writes = {Size::bytes, 2, 3}},
    {.number = SYS_lgetxattr, .writes = {Size::bytes, 2, 3}},
    {.number = SYS_fgetxattr, .writes = {Size::bytes, 2, 3}},
    {.number = SYS_listxattr, .writes = {Size::bytes, 1, 2}},
    {.number = SYS_llistxattr, .writes = {Size::bytes, 1, 2}},
    {.number = SYS_flistxattr, .writes = {Size::bytes, 1, 2}},
    {.number = SYS_futex, .sleeps = {futex}, .resumes = true},
    {.number = SYS_io_getevents, .sleeps = {events}, .interruption = {Timeout::timespec, 4, 0}},
    {.number = SYS_remap_file_pages, .changes_mappings = at_argument},
    {.number = SYS_getdents64, .sleeps = {file}, .writes = {Size::bytes, 1, 2}},
    {.number = SYS_semtimedop, .sleeps = {lock}, .interruption = {Timeout::timespec, 3, -EAGAIN}},
    {.number = SYS_clock_nanosleep, .sleeps = {time}, .resumes = true},
    {.number = SYS_exit_group, .returns_elsewhere = true},
    {.number = SYS_epoll_wait, .sleeps = {events}, .interruption = {Timeout::milliseconds, 3, 0}},
    {.number = SYS_waitid, .sleeps = {child}},
    {.number = SYS_openat, .sleeps = {file}, .descriptor = {opening, by_flags, 2}},
    {.number = SYS_newfstatat, .sleeps = {file}},
    {.number = SYS_unlinkat, .sleeps = {file}},
    {.number = SYS_readlinkat, .writes = {Size::bytes, 2, 3}},
    {.number = SYS_pselect6, .sleeps = {events_if_any, 0}, .resumes = true},
    {.number = SYS_ppoll, .sleeps = {events_if_any, 1}, .resumes = true},
    {.number = SYS_splice, .sleeps = {descriptor}},
    {.number = SYS_sync_file_range, .sleeps = {file}},
    {.number = SYS_epoll_pwait, .sleeps = {events}, .interruption = {Timeout::milliseconds, 3, 0}},
    {.number = SYS_fallocate, .sleeps = {file}},
    {.number = SYS_accept4, .sleeps = {socket}, .interruption = receiving},
    {.number = SYS_dup3, .descriptor = {duplicating, by_flags, 2}},
    {.number = SYS_preadv, .sleeps = {descriptor}, .division = {piece, from_endless_device, 2, 1}},
    {.number = SYS_pwritev, .sleeps = {descriptor}},
    {.number = SYS_recvmmsg, .sleeps = {socket}, .interruption = receiving, .division = {message, waited_for_messages, 2, 1}},
    {.number = SYS_prlimit64, .writes = {Size::fixed, 3, sizeof(rlimit)}},
    {.number = SYS_sendmmsg, .sleeps = {socket}, .interruption = sending, .division = {message, to_stream, 2, 1}},
    {.number = SYS_getrandom, .division = {byte, always, 1, 0}},
    {.number = SYS_execveat, .returns_elsewhere = true},
    {.number = SYS_copy_file_range, .division = {byte, always, 4}},
    {.number = SYS_preadv2, .sleeps = {descriptor}, .division = {piece, from_endless_device, 2, 1}},
    {.number = SYS_pwritev2, .sleeps = {descriptor}},
    {.number = SYS_pkey_mprotect, .changes_mappings = at_argument},
    {.number = SYS_io_pgetevents, .sleeps = {events}, .interruption = {Timeout::timespec, 4, 0}},
    {.number = SYS_io_uring_enter, .sleeps = {events}, .interruption = {Timeout::none}},
    {.number = SYS_openat2, .sleeps = {file}, .descriptor = {opening, unknown}},
    {.number = SYS_epoll_pwait2, .sleeps = {events}, .interruption = {Timeout::timespec, 3, 0}},
    {.number = SYS_futex_waitv, .sleeps = {wakeup}},
};
// clang-format on
constexpr CallFacts nothing{};
static_assert(std::ranges::is_sorted(rows, {}, &CallFacts::number));

AddressRange from(std::uint64_t begin, std::uint64_t size) {
    return {{begin}, Address{begin} + size};
}

}  // namespace

std::vector<AddressRange> CallFacts::changed(const CallArguments& a, std::int64_t result) const {
    constexpr std::int64_t largest_error = 4095;
    if (-largest_error <= result && result < 0) return {};
    const auto at = static_cast<std::uint64_t>(result);
    switch (changes_mappings) {
        case never:
            break;
        case at_result:
            return {from(at, a[1])};
        case at_argument:
            return {from(a[0], a[1])};
        case moves:
            return {from(a[0], a[1]), from(at, a[2])};
        case anywhere:
            return {{{0}, {~std::uint64_t{0}}}};
    }
    return {};
}

AddressRange CallFacts::written(const CallArguments& a) const {
    constexpr std::uint64_t most = 64u << 20;
    const auto at = a[writes.at];
    switch (writes.size) {
        case Size::little:
            break;
        case Size::fixed:
            return from(at, writes.count);
        case Size::bytes:
            return from(at, std::min(a[writes.count], most));
        case Size::groups:
            return from(at, std::min((a[writes.count] & 0xffff'ffff) * sizeof(gid_t), most));
        case Size::pages:
            return from(at, std::min(round_up_to_page(a[writes.count]) / page_size, most));
    }
    return {};
}

std::optional<bool> CallFacts::asks_for_close_on_exec(const CallArguments& a) const {
    switch (descriptor.closes_on_exec) {
        case no:
            return false;
        case by_flags:
            return (a[descriptor.flags] & O_CLOEXEC) != 0;
        case by_command:
            return static_cast<int>(a[descriptor.flags]) == F_DUPFD_CLOEXEC;
        case unknown:
            break;
    }
    return {};
}

const CallFacts& facts_of_call(std::int64_t number) {
    const auto* const row = std::ranges::lower_bound(rows, number, {}, &CallFacts::number);
    return row != std::end(rows) && row->number == number ? *row : nothing;
}

std::span<const CallFacts> facts_of_calls() {
    return rows;
}

}  // namespace shadowprof::proc
