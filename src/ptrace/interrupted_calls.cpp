#include "ptrace/interrupted_calls.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <iterator>

#include "proc/memory.h"
#include "proc/open_files.h"
#include "ptrace/tracee.h"

namespace shadowprof::ptrace {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

using Argument = unsigned long long user_regs_struct::*;
constexpr Argument first = &user_regs_struct::rdi, third = &user_regs_struct::rdx,
                   fourth = &user_regs_struct::r10, fifth = &user_regs_struct::r8;

enum class Timeout { none, in_milliseconds, timespec_at, of_socket_receiving, of_socket_sending };

struct Call {
    std::uint64_t number;
    Timeout timeout;
    Argument argument;  // the timeout, or the socket
    int timed_out;      // the answer when time is over
};

// From signal(7), "Interruption of system calls and library functions by stop signals", with the
// calls that came since. Reading and writing answer EINTR for sockets with a timeout, and for FUSE
// files.
constexpr Call calls[] = {
    {SYS_epoll_wait, Timeout::in_milliseconds, fourth, 0},
    {SYS_epoll_pwait, Timeout::in_milliseconds, fourth, 0},
    {SYS_epoll_pwait2, Timeout::timespec_at, fourth, 0},
    {SYS_semop, Timeout::none, first, 0},
    {SYS_semtimedop, Timeout::timespec_at, fourth, -EAGAIN},
    {SYS_rt_sigtimedwait, Timeout::timespec_at, third, -EAGAIN},
    {SYS_io_getevents, Timeout::timespec_at, fifth, 0},
    {SYS_io_pgetevents, Timeout::timespec_at, fifth, 0},
    {SYS_io_uring_enter, Timeout::none, first, 0},
    {SYS_read, Timeout::of_socket_receiving, first, -EAGAIN},
    {SYS_readv, Timeout::of_socket_receiving, first, -EAGAIN},
    {SYS_recvfrom, Timeout::of_socket_receiving, first, -EAGAIN},
    {SYS_recvmsg, Timeout::of_socket_receiving, first, -EAGAIN},
    {SYS_recvmmsg, Timeout::of_socket_receiving, first, -EAGAIN},
    {SYS_accept, Timeout::of_socket_receiving, first, -EAGAIN},
    {SYS_accept4, Timeout::of_socket_receiving, first, -EAGAIN},
    {SYS_write, Timeout::of_socket_sending, first, -EAGAIN},
    {SYS_writev, Timeout::of_socket_sending, first, -EAGAIN},
    {SYS_sendto, Timeout::of_socket_sending, first, -EAGAIN},
    {SYS_sendmsg, Timeout::of_socket_sending, first, -EAGAIN},
    {SYS_sendmmsg, Timeout::of_socket_sending, first, -EAGAIN},
    {SYS_connect, Timeout::of_socket_sending, first, -EINPROGRESS},
};

const Call* find_call(std::uint64_t number) {
    const auto found = std::find_if(std::begin(calls), std::end(calls),
                                    [&](const Call& call) { return call.number == number; });
    return found == std::end(calls) ? nullptr : found;
}

std::optional<nanoseconds> timeout_of_socket(pid_t process, int descriptor, int option) {
    const int socket = proc::second_descriptor(process, descriptor);
    if (socket < 0) return {};
    timeval timeout{};
    socklen_t size = sizeof timeout;
    const bool got = getsockopt(socket, SOL_SOCKET, option, &timeout, &size) == 0;
    close(socket);
    if (!got || (timeout.tv_sec == 0 && timeout.tv_usec == 0)) return {};
    return seconds{timeout.tv_sec} + microseconds{timeout.tv_usec};
}

}  // namespace

bool answered_eintr(const Registers& registers) {
    return registers.in_system_call() && registers.result() == -EINTR &&
           find_call(registers.raw.orig_rax) != nullptr;
}

bool is_system_call_at(pid_t process, Address address) {
    constexpr std::uint16_t system_call = 0x050f;
    if (const auto word = word_at(process, address))
        return static_cast<std::uint16_t>(*word) == system_call;
    return proc::Memory{process}.read_as<std::uint16_t>(address) == system_call;
}

void issue_again(Registers& registers) {
    registers.raw.rax = registers.raw.orig_rax;
    registers.raw.rip -= system_call_length;
}

void answer_eintr(Registers& registers) {
    registers.raw.rax = static_cast<std::uint64_t>(-EINTR);
    registers.raw.rip += system_call_length;
}

void answer_timed_out(Registers& registers) {
    const auto* call = find_call(registers.raw.orig_rax);
    registers.raw.rax = static_cast<std::uint64_t>(std::int64_t{call->timed_out});
}

std::optional<nanoseconds> timeout_of_call(pid_t process, const Registers& registers) {
    const auto* call = find_call(registers.raw.orig_rax);
    const auto argument = registers.raw.*call->argument;
    switch (call->timeout) {
        case Timeout::none:
            return {};
        case Timeout::in_milliseconds: {
            const auto timeout = static_cast<std::int32_t>(argument);
            if (timeout < 0) return {};
            return milliseconds{timeout};
        }
        case Timeout::timespec_at: {
            const auto timeout = proc::Memory{process}.read_as<timespec>({argument});
            if (!timeout) return {};
            return seconds{timeout->tv_sec} + nanoseconds{timeout->tv_nsec};
        }
        case Timeout::of_socket_receiving:
            return timeout_of_socket(process, static_cast<int>(argument), SO_RCVTIMEO);
        case Timeout::of_socket_sending:
            return timeout_of_socket(process, static_cast<int>(argument), SO_SNDTIMEO);
    }
    return {};
}

}  // namespace shadowprof::ptrace
