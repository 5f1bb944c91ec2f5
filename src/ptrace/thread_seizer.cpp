#include "ptrace/thread_seizer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string>

#include "base/error.h"
#include "proc/proc_text.h"
#include "proc/process_info.h"
#include "ptrace/seize.h"

namespace shadowprof::ptrace {
namespace {

std::string status_of(pid_t pid, pid_t tid) {
    return proc::read_proc_file(fmt::format("/proc/{}/task/{}/status", pid, tid));
}

bool is_traced_by_us(std::string_view status) {
    return proc::status_field(status, "TracerPid") == std::to_string(gettid());
}

}  // namespace

// A thread that was started by one of our tracees is ours already, and will report itself.
bool ThreadSeizer::has_ended_or_is_ours(pid_t pid, pid_t tid) {
    const auto status = status_of(pid, tid);
    const auto state = proc::status_field(status, "State");
    return state.empty() || state.front() == 'Z' || state.front() == 'X' || is_traced_by_us(status);
}

void ThreadSeizer::seize_all() {
    std::set<pid_t> tried;
    for (bool found_new = true; found_new;) {
        found_new = false;
        for (const pid_t tid : proc::threads_of(process_)) {
            if (threads_.find(tid) || !tried.insert(tid).second) continue;
            found_new = true;
            if (seize_or_yield_to_exec(tid)) {
                threads_.add(tid);
            } else if (const int error = errno; !has_ended_or_is_ours(process_, tid)) {
                throw UserError(why_not_seized(process_, error));
            }
        }
    }
}

// An exec holds the lock that a seizure takes (cred_guard_mutex) until the program's other threads
// are gone; and it waits for us to hear of the ends of those that we hold already.
bool ThreadSeizer::seize_or_yield_to_exec(pid_t tid) {
    while (true) {
        // What the timer leaves behind is in the order of what was done.
        volatile bool is_ours = false, is_done = false;
        volatile int error = 0;
        timer_.leave_at(Clock::now() + tuning::longest_seizure, [&] {
            is_ours = seize(tid);
            error = errno;
            is_done = true;
        });
        if (is_done) {
            errno = error;
            return is_ours;
        }
        if (is_traced_by_us(status_of(process_, tid))) return true;
        while (!threads_.empty()) {
            const auto event = reader_.read();
            if (!event) break;
            reader_.keep(*event);
        }
    }
}

void ThreadSeizer::look_for_missed() {
    const auto now = Clock::now();
    if (now < next_look_) return;
    between_looks_ *= 2;
    next_look_ = between_looks_ < tuning::longest_between_looks_for_missed
                     ? now + between_looks_
                     : Clock::time_point::max();
    seize_possible();
}

void ThreadSeizer::seize_possible() {
    try {
        seize_all();
    } catch (const UserError&) {
        // Another tracer took one while we were not looking; it may keep it.
    }
}

}  // namespace shadowprof::ptrace
