// Waiting for what happens to the traced threads, and telling apart what it was.
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
// their own (vfork-like clones) arrive as well; both are dealt with here and go on unseen.
#include "ptrace/tracer.h"

#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>

#include "base/clock.h"
#include "base/error.h"
#include "proc/memory.h"
#include "proc/process_info.h"
#include "ptrace/cpu_follower.h"
#include "ptrace/interrupted_calls.h"
#include "ptrace/parent_thread.h"
#include "ptrace/system.h"
#include "ptrace/tracee.h"
#include "ptrace/tracing_thread.h"
#include "ptrace/wait_timer.h"
#include "ptrace/woken_threads.h"

namespace shadowprof::ptrace {
namespace {

// After an interruption, without sleeping.
constexpr std::chrono::microseconds worth_watching{60};

std::atomic<bool> wake_requested{false};
std::atomic<pid_t> waiting_thread{0};

bool is_stop_signal(int signal) {
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

// The thread waits for the answer, and to read its file "status" takes longer than all the rest.
bool is_thread_of(pid_t pid, pid_t tid) {
    return tgkill(pid, tid, 0) == 0 || errno == EPERM;
}

// A trap of the kernel's after a step, in contrast to a SIGTRAP that the program would have had
// without us: sent by somebody, or by int3 (SI_KERNEL) or int1 (TRAP_BRKPT).
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

// What waitpid(2) would say of any tracee, without waiting; nothing if there is no news.
//
// The kernel keeps a signal that is about to be delivered only until its news has been taken: if we
// were killed before we passed it on, it would be lost. So that news is only looked at, and it is
// gone when the thread goes on; until then, looking again shows it again (not `taken`).
struct News {
    pid_t tid = 0;  // negative: there are no tracees
    int status = 0;
    bool taken = true;
};

News look_for_news() {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WNOHANG | WEXITED | WSTOPPED | WNOWAIT | __WALL | __WNOTHREAD) != 0)
        return {.tid = -1};
    if (info.si_pid == 0) return {};
    const bool is_stop = info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED;
    const bool is_signal =
        is_stop && info.si_status < system_call_stop && info.si_status != SIGTRAP;
    if (is_signal)
        return {.tid = info.si_pid, .status = info.si_status << 8 | 0x7f, .taken = false};
    News news;
    news.tid = waitpid(info.si_pid, &news.status, __WALL | __WNOTHREAD | WNOHANG);
    return news;
}

}  // namespace

Tracer::Tracer(pid_t pid, bool launched)
    : pid_(pid), launched_(launched), alarm_(std::make_unique<WaitTimer>()) {
    wake_up_promptly();
}

std::vector<Thread*> Tracer::threads() {
    std::vector<Thread*> all;
    for (auto& [tid, thread] : threads_) all.push_back(thread.get());
    return all;
}

Thread* Tracer::thread(pid_t tid) {
    const auto found = threads_.find(tid);
    return found == threads_.end() ? nullptr : found->second.get();
}

void Tracer::wake() {
    wake_requested = true;
    if (const pid_t tid = waiting_thread) tgkill(getpid(), tid, WaitTimer::signal());
}

std::optional<Event> Tracer::wait(Clock::time_point deadline) {
    waiting_thread = gettid();
    if (const int signal = std::exchange(stopped_by_, 0); signal != 0 && when_stopped_)
        when_stopped_(signal);
    if (events_.empty()) gone_.clear();
    while (alive_ && !wake_requested.exchange(false)) {
        if (next_look_ != Clock::time_point::max()) look_for_missed_threads();
        if (auto event = next_event()) {
            alive_ = event->kind != EventKind::process_gone;
            return event;
        }
        const auto now = Clock::now();
        if (now >= deadline) return {};
        // A thread stands still from when it stops until it is heard of: a wake-up less is a third
        // of that, and a running one stops within microseconds.
        if (now < Thread::last_asked_ + worth_watching) continue;
        alarm_->sleep_until_news(deadline);
    }
    return {};
}

// Without waiting.
std::optional<Event> Tracer::next_event() {
    if (!events_.empty()) {
        const auto event = events_.front();
        events_.pop_front();
        return event;
    }
    return event_of_news();
}

std::optional<Event> Tracer::event_of_news() {
    while (true) {
        const auto news = look_for_news();
        if (news.tid < 0 && errno == ECHILD) return process_is_gone({});
        if (news.tid <= 0) return {};
        if (const auto* known = thread(news.tid); !news.taken && known && known->stopped_) {
            // Its signal is held back by whoever was told: out of the way.
            int status = 0;
            waitpid(news.tid, &status, __WALL | __WNOTHREAD | WNOHANG);
            continue;
        }
        if (auto event = digest(news.tid, news.status)) return event;
    }
}

std::optional<Event> Tracer::digest(pid_t tid, int status) {
    if (!WIFSTOPPED(status)) return after_end(tid, status);
    if (!thread(tid)) {
        if (!is_thread_of(pid_, tid)) {
            request(PTRACE_DETACH, tid);
            return {};
        }
        threads_[tid] = std::make_unique<Thread>(pid_, tid);
        threads_[tid]->is_started_ = false;
    }
    auto& thread = *threads_[tid];
    thread.stopped_ = true;
    if (follower_) follower_->stopped();
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

std::optional<Event> Tracer::after_trap_stop(Thread& thread, int stop_signal) {
    Event event{.kind = EventKind::interrupted, .thread = &thread};
    if (is_stop_signal(stop_signal)) {
        event.kind = EventKind::group_stop;
        event.signal = stop_signal;
        thread.interrupt_wanted_ = false;
        thread.in_group_stop_ = thread.call_saw_group_stop_ = true;
        if (thread.tid() == pid_) stopped_by_ = stop_signal;
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
        const auto sets = proc::signal_sets(pid_, thread.tid());
        thread.step_trap_is_pending_ = sets && (sets->pending >> (SIGTRAP - 1) & 1);
    }
    if (event.kind == EventKind::interrupted && !std::exchange(thread.interrupt_wanted_, false)) {
        repair_interrupted_call(thread);
        thread.go(thread.motion_, 0);
        return {};
    }
    return event;
}

std::optional<Event> Tracer::after_signal_stop(Thread& thread, int signal) {
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
        undo_reissue_for(thread, signal);
    }
    thread.stop_kind_ = event.kind;
    return event;
}

Event Tracer::after_exec(Thread& thread) {
    // The thread that called exec has taken the process's id, and all others are dead, though their
    // ends may still be reported.
    for (auto entry = threads_.begin(); entry != threads_.end();) {
        if (entry->second.get() == &thread) {
            ++entry;
        } else {
            gone_.push_back(std::move(entry->second));
            entry = threads_.erase(entry);
        }
    }
    thread.is_started_ = true;
    thread.interrupt_wanted_ = thread.in_group_stop_ = thread.call_saw_group_stop_ = false;
    thread.step_trap_is_pending_ = false;
    thread.reissue_.reset();
    thread.stop_kind_ = EventKind::exec;
    return Event{.kind = EventKind::exec, .thread = &thread};
}

std::optional<Event> Tracer::after_end(pid_t tid, int status) {
    if (tid == pid_) return process_is_gone(status);
    const auto found = threads_.find(tid);
    if (found == threads_.end()) return {};
    found->second->stopped_ = false;
    gone_.push_back(std::move(found->second));
    threads_.erase(found);
    const Event event{.kind = EventKind::thread_gone, .thread = gone_.back().get()};
    // The first thread usually ends last. Had it ended before we attached, nobody tells us more.
    if (threads_.empty()) events_.push_back(process_is_gone({}));
    return event;
}

Event Tracer::process_is_gone(std::optional<int> status) {
    for (auto& [tid, thread] : threads_) gone_.push_back(std::move(thread));
    threads_.clear();
    return Event{.kind = EventKind::process_gone,
                 .exit_status = status.value_or(0),
                 .exit_status_known = status.has_value()};
}

void Tracer::give_back(const Event& event) {
    events_.push_front(event);
    alive_ = true;
}

void Tracer::pass_on(const Event& event) {
    if (!event.thread || !event.thread->stopped()) return;
    auto& thread = *event.thread;
    switch (event.kind) {
        case EventKind::group_stop:
            thread.listen();
            return;
        case EventKind::signal:
            repair_interrupted_call(thread);
            thread.resume(event.signal);
            return;
        case EventKind::interrupted:
            repair_interrupted_call(thread);
            thread.resume();
            return;
        default:
            thread.resume();
            return;
    }
}

bool Tracer::repair_interrupted_call(Thread& thread) {
    const auto kind = thread.stop_kind_;
    if (kind != EventKind::interrupted && kind != EventKind::signal &&
        kind != EventKind::system_call_exit)
        return false;
    const bool saw_group_stop = std::exchange(thread.call_saw_group_stop_, false);
    auto registers = thread.registers();
    if (!registers || !answered_eintr(*registers) || saw_group_stop) return false;
    // The exit of a call comes before the answer to the interruption that ended it.
    const bool is_ours = kind == EventKind::interrupted ||
                         (kind == EventKind::system_call_exit && thread.interrupt_wanted_);
    if (!is_ours) {
        const auto sets = proc::signal_sets(pid_, thread.tid());
        if (!sets) return false;
        auto causes = (sets->pending | sets->process_pending) & ~sets->blocked;
        if (thread.held_signal_ != 0) causes = std::uint64_t{1} << (thread.held_signal_ - 1);
        if (causes == 0) return false;
        for (int signal = 1; signal <= 64; ++signal)
            if ((causes >> (signal - 1) & 1) && sets->acts_on(signal)) return false;
    }
    if (!is_system_call_at(pid_, registers->rip() - system_call_length)) return false;
    const bool again = is_still_in_reissued_call(thread, *registers);
    const auto first = again ? thread.reissue_->first : Clock::now();
    if (const auto timeout = again ? timeout_of_call(pid_, *registers) : std::nullopt;
        timeout && Clock::now() - first >= *timeout) {
        answer_timed_out(*registers);
        thread.reissue_.reset();
        thread.set_registers(*registers);
        return false;
    }
    issue_again(*registers);
    if (!thread.set_registers(*registers)) return false;
    thread.reissue_ = {*registers, first, slept_by_itself(thread)};
    return true;
}

// How often, but for its stops, of which each is a sleep.
std::uint64_t Tracer::slept_by_itself(const Thread& thread) const {
    return proc::times_slept(pid_, thread.tid()).value_or(0) - thread.times_let_go_;
}

// Since the last reissue the thread has slept once at most, in the call, and would begin the same
// call: it is the same one, or one that began not much later.
bool Tracer::is_still_in_reissued_call(const Thread& thread, const Registers& registers) const {
    if (!thread.reissue_) return false;
    auto begun = registers;
    issue_again(begun);
    const auto& before = thread.reissue_->registers.raw;
    const auto& now = begun.raw;
    const bool same = now.rip == before.rip && now.rax == before.rax && now.rsp == before.rsp &&
                      now.rdi == before.rdi && now.rsi == before.rsi && now.rdx == before.rdx &&
                      now.r10 == before.r10 && now.r8 == before.r8 && now.r9 == before.r9;
    return same && slept_by_itself(thread) <= thread.reissue_->times_slept_since + 1;
}

// A signal with a handler came just after we set a call to be issued again, before that happened:
// the call then does answer EINTR, as it would have if the signal had come first. A program that
// waits with epoll_pwait relies on it.
void Tracer::undo_reissue_for(Thread& thread, int signal) {
    if (!thread.reissue_) return;
    auto registers = thread.registers();
    if (!registers || registers->raw.rip != thread.reissue_->registers.raw.rip ||
        registers->raw.rax != thread.reissue_->registers.raw.rax)
        return;
    const auto sets = proc::signal_sets(pid_, thread.tid());
    if (!sets || sets->ignores(signal)) return;
    answer_eintr(*registers);
    thread.set_registers(*registers);
    thread.reissue_.reset();
}

// Of a first thread that ends before the others nobody is told.
bool Tracer::will_be_heard_of(const Thread& thread) const {
    const auto stat = proc::thread_stat(pid_, thread.tid());
    return stat && stat->state != 'Z' && stat->state != 'X';
}

bool Tracer::is_anyone_asked() const {
    return std::any_of(threads_.begin(), threads_.end(), [&](const auto& entry) {
        return entry.second->interrupt_wanted_ && will_be_heard_of(*entry.second);
    });
}

void Tracer::follow(const Thread& thread) {
    follower_.reset();
    follower_ = std::make_unique<CpuFollower>(pid_, thread.tid());
}

void Tracer::stop_following() {
    follower_.reset();
}

Tracer::~Tracer() {
    pid_t self = gettid();
    waiting_thread.compare_exchange_strong(self, 0);
    if (alive_) let_go_of_everything();
}

// Threads that nothing has disturbed are released by the end of this thread of the profiler. The
// others must not be left to that: a signal that was reported and not delivered would be lost, a
// step in flight would end with a SIGTRAP that kills the program, and a sleeper that was woken
// would see EINTR, be it by an interruption or by what only a tracee is woken by: a signal that it
// ignores, or a SIGCONT, which wakes all. Nobody is asked to stop for that: a call that moves
// megabytes would be broken off, and there is nobody any more to finish it (rest_of_call.h).
void Tracer::let_go_of_everything() {
    const auto release = [&](Thread& thread) {
        repair_interrupted_call(thread);
        thread.interrupt_wanted_ = false;
        if (thread.step_trap_is_pending_) {
            thread.step();  // only as far as the pending trap
        } else {
            thread.release(thread.held_signal_);
            threads_.erase(thread.tid());
        }
    };
    // A thread that is being stepped answers late only while it sleeps uninterruptibly; leaving
    // then would kill the program when it wakes.
    const auto is_awaited = [&](const Thread& thread) {
        return (thread.interrupt_wanted_ || thread.motion_ == Thread::Motion::step) &&
               will_be_heard_of(thread);
    };
    WokenThreads woken{pid_};
    // Their threads are stopped; an exec at the start leaves its event unread.
    events_.clear();
    constexpr std::chrono::microseconds between_looks{300}, while_awaiting{10'000};
    const auto deadline = Clock::now() + std::chrono::seconds{1};
    // To look at hundreds of threads takes milliseconds, in which those that were seen asleep may
    // be woken: all that are left have to be undisturbed in one go.
    while (true) {
        bool is_undisturbed = true;
        for (auto* const thread : threads()) {
            if (thread->stopped_) {
                release(*thread);
            } else if (is_awaited(*thread)) {
                thread->interrupt_wanted_ = request(PTRACE_INTERRUPT, thread->tid()) == 0;
                is_undisturbed = false;
            } else if (woken.may_include(thread->tid())) {
                is_undisturbed &= Clock::now() >= deadline;
            }
        }
        for (auto news = look_for_news(); news.tid != 0; news = look_for_news()) {
            if (news.tid < 0) return;
            is_undisturbed = false;
            // Whatever it stopped for, it need not be let go on once more.
            if (auto* const known = thread(news.tid)) known->interrupt_wanted_ = true;
            const auto event = digest(news.tid, news.status);
            if (event && event->thread && event->thread->stopped_) release(*event->thread);
        }
        if (is_undisturbed) return;
        const auto now = Clock::now();
        alarm_->sleep_until_news(now + (now < deadline ? between_looks : while_awaiting));
    }
}

}  // namespace shadowprof::ptrace
