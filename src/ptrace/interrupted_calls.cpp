#include "ptrace/interrupted_calls.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "proc/call_facts.h"
#include "proc/memory.h"
#include "proc/open_files.h"
#include "ptrace/tracee.h"

namespace shadowprof::ptrace {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

using Timeout = proc::Interruption::Timeout;

const proc::Interruption& interruption_of(const Registers& registers) {
    return proc::facts_of_call(static_cast<std::int64_t>(registers.raw.orig_rax)).interruption;
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
           interruption_of(registers).timeout != Timeout::no_interruption;
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
    const std::int64_t answer = interruption_of(registers).timed_out;
    registers.raw.rax = static_cast<std::uint64_t>(answer);
}

std::optional<nanoseconds> timeout_of_call(pid_t process, const Registers& registers) {
    const auto& call = interruption_of(registers);
    const auto argument = registers.arguments()[call.argument];
    switch (call.timeout) {
        case Timeout::no_interruption:
        case Timeout::none:
            return {};
        case Timeout::milliseconds: {
            const auto timeout = static_cast<std::int32_t>(argument);
            if (timeout < 0) return {};
            return std::chrono::milliseconds{timeout};
        }
        case Timeout::timespec: {
            const auto timeout = proc::Memory{process}.read_as<timespec>({argument});
            if (!timeout) return {};
            return seconds{timeout->tv_sec} + nanoseconds{timeout->tv_nsec};
        }
        case Timeout::of_receiving:
            return timeout_of_socket(process, static_cast<int>(argument), SO_RCVTIMEO);
        case Timeout::of_sending:
            return timeout_of_socket(process, static_cast<int>(argument), SO_SNDTIMEO);
    }
    return {};
}

}  // namespace shadowprof::ptrace
