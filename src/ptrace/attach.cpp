// Taking hold of a running process without stopping it.
//
// Threads come and go meanwhile. A thread that we hold passes the hold on to those it starts, so
// looking again until nothing new is seen ends with all of them held; all but those that were being
// born, and not yet to be seen, when their creators were seized. One looks again for these later.
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "proc/proc_text.h"
#include "proc/process_info.h"
#include "ptrace/parent_thread.h"
#include "ptrace/seize.h"
#include "ptrace/tracer.h"
#include "ptrace/tracing_thread.h"
#include "ptrace/wait_timer.h"

namespace shadowprof::ptrace {
namespace {

bool is_kernel_thread(pid_t pid) {
    constexpr unsigned long pf_kthread = 0x00200000;
    const auto text = proc::read_proc_file(fmt::format("/proc/{}/stat", pid));
    const auto name_end = text.rfind(')');
    unsigned long flags = 0;
    return name_end != std::string::npos &&
           std::sscanf(text.c_str() + name_end + 1, " %*c %*d %*d %*d %*d %*d %lu", &flags) == 1 &&
           (flags & pf_kthread) != 0;
}

bool is_32bit(pid_t pid) {
    const auto exe = fmt::format("/proc/{}/exe", pid);
    const int fd = open(exe.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    unsigned char ident[EI_NIDENT] = {};
    const bool got = read(fd, ident, sizeof ident) == sizeof ident;
    close(fd);
    return got && std::memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS32;
}

void refuse_what_cannot_be_profiled(pid_t pid) {
    const auto status = pid > 0 ? proc::read_proc_file(fmt::format("/proc/{}/status", pid)) : "";
    if (status.empty()) throw UserError(fmt::format("no process {}", pid));
    if (pid == getpid()) throw UserError("shadowprof cannot profile itself");
    const auto process = proc::status_field(status, "Tgid");
    if (process != std::to_string(pid))
        throw UserError(fmt::format("{} is a thread of process {} ({}); attach to that", pid,
                                    process, proc::status_field(status, "Name")));
    if (is_kernel_thread(pid))
        throw UserError(fmt::format("{} ({}) is a kernel thread, not a program", pid,
                                    proc::status_field(status, "Name")));
    if (is_32bit(pid))
        throw UserError(
            fmt::format("process {} ({}) is a 32-bit program, and shadowprof profiles "
                        "64-bit ones",
                        pid, proc::status_field(status, "Name")));
}

std::string status_of(pid_t pid, pid_t tid) {
    return proc::read_proc_file(fmt::format("/proc/{}/task/{}/status", pid, tid));
}

bool is_traced_by_us(std::string_view status) {
    return proc::status_field(status, "TracerPid") == std::to_string(gettid());
}

// One that a thread of ours started is ours already, and will report itself.
bool has_ended_or_is_ours(pid_t pid, pid_t tid) {
    const auto status = status_of(pid, tid);
    const auto state = proc::status_field(status, "State");
    return state.empty() || state.front() == 'Z' || state.front() == 'X' || is_traced_by_us(status);
}

}  // namespace

std::unique_ptr<Tracer> Tracer::attach(pid_t pid) {
    refuse_what_cannot_be_profiled(pid);
    prepare_tracing_thread();
    std::unique_ptr<Tracer> tracer{new Tracer(pid, false)};
    tracer->seize_threads();
    if (tracer->threads_.empty()) throw UserError(why_not_seized(pid, ESRCH));
    tracer->between_looks_ = std::chrono::milliseconds{1};
    tracer->next_look_ = Clock::now() + tracer->between_looks_;
    return tracer;
}

void Tracer::seize_threads() {
    std::set<pid_t> tried;
    for (bool found_new = true; found_new;) {
        found_new = false;
        for (const pid_t tid : proc::threads_of(pid_)) {
            if (threads_.count(tid) || !tried.insert(tid).second) continue;
            found_new = true;
            if (seize_or_yield_to_exec(tid)) {
                threads_[tid] = std::make_unique<Thread>(pid_, tid);
            } else if (const int error = errno; !has_ended_or_is_ours(pid_, tid)) {
                throw UserError(why_not_seized(pid_, error));
            }
        }
    }
}

// An exec holds the lock that a seizure takes (cred_guard_mutex) until the program's other threads
// are gone, and of those that we hold already it waits for us to hear of their ends.
bool Tracer::seize_or_yield_to_exec(pid_t tid) {
    while (true) {
        // What the alarm leaves behind is in the order of what was done.
        volatile bool is_ours = false, is_done = false;
        volatile int error = 0;
        alarm_->leave_at(Clock::now() + std::chrono::milliseconds{20}, [&] {
            is_ours = seize(tid);
            error = errno;
            is_done = true;
        });
        if (is_done) {
            errno = error;
            return is_ours;
        }
        if (is_traced_by_us(status_of(pid_, tid))) return true;
        while (!threads_.empty()) {
            const auto event = event_of_news();
            if (!event) break;
            events_.push_back(*event);
        }
    }
}

void Tracer::look_for_missed_threads() {
    const auto now = Clock::now();
    if (now < next_look_) return;
    // A birth takes well under a millisecond of processor time, but may be kept waiting for it.
    constexpr auto longest = std::chrono::seconds{10};
    between_looks_ *= 2;
    next_look_ = between_looks_ < longest ? now + between_looks_ : Clock::time_point::max();
    try {
        seize_threads();
    } catch (const UserError&) {
        // Another tracer took one while we were not looking; it may keep it.
    }
}

}  // namespace shadowprof::ptrace
