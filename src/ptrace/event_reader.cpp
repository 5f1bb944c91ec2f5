// Telling apart what the kernel reports.
//
// A seized thread stops for many reasons that waitpid(2) reports almost alike. The status carries a
// signal number and, above it, a PTRACE_EVENT code:
//
//   event EXEC, CLONE            what it says; the kernel's message has the former or the new tid
//   event STOP, a stop signal    the whole process is stopped (SIGSTOP, Ctrl-Z …); to be "listened"
//   event STOP, SIGTRAP          a new thread's first stop, or our interruption, or the end of a
//                                group stop, or a SIGCONT that found the process not stopped
//   no event, SIGTRAP | 0x80     a system call is entered or left
//   no event, SIGTRAP            a step is done, or a genuine SIGTRAP is to be delivered
//   no event, any other          that signal is to be delivered
//
// A thread that clones stops once more than its user asked for, and new tasks that are processes of
// their own (vfork-like clones) are reported as well; both are dealt with here and go on unseen.
#include "ptrace/event_reader.h"

#include <signal.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "proc/memory.h"
#include "proc/process_info.h"
#include "ptrace/system.h"
#include "ptrace/tracee.h"

namespace shadowprof::ptrace {
namespace {

bool is_stop_signal(int signal) {
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

// The thread waits for the answer, and reading its file "status" would take longer than all the
// rest.
bool is_thread_of(pid_t pid, pid_t tid) {
    return tgkill(pid, tid, 0) == 0 || errno == EPERM;
}

// Whether this is the kernel's trap after a step, and not a SIGTRAP that the program would have had
// without us: one that a process sent, or that int3 (SI_KERNEL) or int1 (TRAP_BRKPT) raised.
bool is_end_of_step(const Thread& thread, const siginfo_t& info) {
    constexpr int entered_handler = SIGTRAP;
    if (info.si_code == TRAP_TRACE || info.si_code == entered_handler) return true;
    if (info.si_code != TRAP_BRKPT) return false;
    // A step over a system call ends with this code too, and rt_sigreturn, unlike others, leaves
    // orig_rax negative, as int1 does. It may even return to just behind an int1. But the debug
    // status register then still shows the step before it.
    const auto registers = thread.registers();
    if (!registers || registers->in_system_call()) return true;
    constexpr std::byte int1{0xf1};
    if (proc::Memory{thread.tid()}.read_as<std::byte>(registers->rip() - 1) != int1) return true;
    constexpr long single_step = 1 << 14;
    const auto status =
        request(PTRACE_PEEKUSER, thread.tid(), offsetof(user, u_debugreg[6]), nullptr);
    return (status & single_step) != 0;
}

}  // namespace

WaitStatus EventReader::look() {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WNOHANG | WEXITED | WSTOPPED | WNOWAIT | __WALL | __WNOTHREAD) != 0)
        return {.tid = -1};
    if (info.si_pid == 0) return {};
    const bool is_stop = info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED;
    const bool is_signal =
        is_stop && info.si_status < system_call_stop && info.si_status != SIGTRAP;
    if (is_signal)
        return {.tid = info.si_pid, .status = info.si_status << 8 | 0x7f, .is_taken = false};
    WaitStatus found;
    found.tid = waitpid(info.si_pid, &found.status, __WALL | __WNOTHREAD | WNOHANG);
    return found;
}

std::optional<Event> EventReader::next() {
    if (kept_.empty()) return read();
    const auto event = kept_.front();
    kept_.pop_front();
    return event;
}

int EventReader::take_unreported_stop() {
    return std::exchange(unreported_stop_, 0);
}

std::optional<Event> EventReader::read() {
    while (true) {
        const auto found = look();
        if (found.tid < 0 && errno == ECHILD) {
            if (!threads_.is_any_loose()) return process_is_gone({});
            threads_.all_are_loose();
        }
        if (found.tid <= 0) return {};
        if (const auto* known = threads_.find(found.tid);
            !found.is_taken && known && known->stopped_) {
            // Whoever got the event still holds the signal back: take it out of the way.
            int status = 0;
            waitpid(found.tid, &status, __WALL | __WNOTHREAD | WNOHANG);
            continue;
        }
        if (auto event = digest(found.tid, found.status)) return event;
    }
}

std::optional<Event> EventReader::digest(pid_t tid, int status) {
    if (!WIFSTOPPED(status)) return after_end(tid, status);
    if (!threads_.find(tid)) {
        if (!is_thread_of(threads_.process(), tid)) {
            request(PTRACE_DETACH, tid);
            return {};
        }
        threads_.add(tid).is_started_ = false;
    }
    auto& thread = *threads_.find(tid);
    thread.stopped_ = true;
    const int signal = WSTOPSIG(status);
    switch (status >> 16) {
        case PTRACE_EVENT_CLONE:
            thread.go(thread.motion_, 0);
            return {};
        case PTRACE_EVENT_EXEC:
            return after_exec(thread);
        case PTRACE_EVENT_EXIT:
            thread.stop_kind_ = EventKind::thread_exiting;
            return Event{.kind = EventKind::thread_exiting, .thread = &thread};
        case PTRACE_EVENT_STOP:
            return after_trap_stop(thread, signal);
        default:
            break;
    }
    if (signal == system_call_stop) {
        const bool entry = event_message(tid) == message_of_system_call_entry;
        thread.stop_kind_ = entry ? EventKind::system_call_entry : EventKind::system_call_exit;
        return Event{.kind = thread.stop_kind_, .thread = &thread};
    }
    return after_signal_stop(thread, signal);
}

std::optional<Event> EventReader::after_trap_stop(Thread& thread, int stop_signal) {
    Event event{.kind = EventKind::interrupted, .thread = &thread};
    if (is_stop_signal(stop_signal)) {
        event.kind = EventKind::group_stop;
        event.signal = stop_signal;
        thread.interrupt_wanted_ = false;
        thread.in_group_stop_ = thread.call_saw_group_stop_ = true;
        if (thread.tid() == threads_.process()) unreported_stop_ = stop_signal;
    } else if (!std::exchange(thread.is_started_, true)) {
        event.kind = EventKind::thread_started;
        thread.in_group_stop_ = false;
    } else if (std::exchange(thread.in_group_stop_, false)) {
        event.kind = EventKind::group_stop_ended;
    } else {
        thread.call_saw_group_stop_ = false;
    }
    thread.stop_kind_ = event.kind;
    // These stops come before signals, so also before the one that ends a step.
    if (thread.motion_ == Thread::Motion::step) {
        const auto sets = proc::signal_sets(threads_.process(), thread.tid());
        thread.step_trap_is_pending_ = sets && (sets->pending >> (SIGTRAP - 1) & 1);
    }
    if (event.kind == EventKind::interrupted && !std::exchange(thread.interrupt_wanted_, false)) {
        repair_.repair(thread);
        thread.go(thread.motion_, 0);
        return {};
    }
    return event;
}

std::optional<Event> EventReader::after_signal_stop(Thread& thread, int signal) {
    Event event{.kind = EventKind::signal, .thread = &thread, .signal = signal};
    if (request(PTRACE_GETSIGINFO, thread.tid(), 0, &event.info) != 0) {
        thread.stopped_ = false;  // killed meanwhile; its end is still to be reported
        return {};
    }
    const bool steps = thread.motion_ == Thread::Motion::step;
    if (signal == SIGTRAP && (steps || thread.step_trap_is_pending_) &&
        is_end_of_step(thread, event.info)) {
        thread.step_trap_is_pending_ = false;
        if (!steps) {
            thread.go(thread.motion_, 0);
            return {};
        }
        event.kind = EventKind::stepped;
        event.signal = 0;
    } else {
        thread.held_signal_ = signal;
        if (signal != SIGCONT) thread.call_saw_group_stop_ = false;
        repair_.undo_for(thread, signal);
    }
    thread.stop_kind_ = event.kind;
    return event;
}

Event EventReader::after_exec(Thread& thread) {
    // The thread that called exec has taken the process's id, and all others are dead, though their
    // ends may still be reported.
    threads_.remove_all_but(&thread);
    thread.is_started_ = true;
    thread.interrupt_wanted_ = thread.in_group_stop_ = thread.call_saw_group_stop_ = false;
    thread.step_trap_is_pending_ = false;
    thread.reissue_.reset();
    thread.stop_kind_ = EventKind::exec;
    return Event{.kind = EventKind::exec, .thread = &thread};
}

// The program's first thread is held, and runs.
Event EventReader::missed_exec() {
    auto* const first = threads_.find(threads_.process());
    return after_exec(first ? *first : threads_.add(threads_.process()));
}

std::optional<Event> EventReader::after_end(pid_t tid, int status) {
    if (tid == threads_.process()) return process_is_gone(status);
    auto* const thread = threads_.find(tid);
    if (!thread) return {};
    thread->stopped_ = false;
    threads_.remove(tid);
    // The first thread usually ends last. If it ended before we attached, nothing more is reported.
    if (threads_.empty()) keep(process_is_gone({}));
    return Event{.kind = EventKind::thread_gone, .thread = thread};
}

Event EventReader::process_is_gone(std::optional<int> status) {
    threads_.remove_all_but(nullptr);
    if (!end_ || status)
        end_ = Event{.kind = EventKind::process_gone,
                     .exit_status = status.value_or(0),
                     .exit_status_known = status.has_value()};
    return *end_;
}

}  // namespace shadowprof::ptrace
