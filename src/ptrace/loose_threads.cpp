#include "ptrace/loose_threads.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "proc/memory.h"
#include "proc/process_info.h"
#include "ptrace/seize.h"
#include "ptrace/tuning.h"

namespace shadowprof::ptrace {

namespace {

// Somebody waits to hear of what these do.
bool stops_or_continues(int signal) {
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU ||
           signal == SIGCONT;
}

}  // namespace

LooseThreads::LooseThreads(bool is_child, TracedThreads& threads, EventReader& reader,
                           ThreadSeizer& seizer, CallRepair& repair, WaitTimer& timer)
    : is_child_(is_child),
      threads_(threads),
      reader_(reader),
      seizer_(seizer),
      repair_(repair),
      timer_(timer),
      process_file_(static_cast<int>(syscall(SYS_pidfd_open, threads.process(), 0))) {}

LooseThreads::~LooseThreads() {
    if (process_file_ >= 0) close(process_file_);
}

std::optional<LooseThreads::Program> LooseThreads::program() const {
    const auto pid = proc::one_with_memory(threads_.process());
    const auto at = proc::random_bytes_of(pid);
    if (!at) return {};
    const auto bytes = proc::Memory{pid}.read_as<std::array<std::uint64_t, 2>>(*at);
    return bytes ? std::optional{Program{*at, *bytes}} : std::nullopt;
}

bool LooseThreads::let_go(const Event& event) {
    if (event.kind != EventKind::signal || stops_or_continues(event.signal)) return false;
    auto& thread = *event.thread;
    if (!thread.stopped_ || thread.interrupt_wanted_ || thread.step_trap_is_pending_ ||
        thread.motion_ != Thread::Motion::run || process_file_ < 0)
        return false;
    if (!program_) program_ = program();
    if (!program_) return false;
    repair_.repair(thread);
    thread.reissue_.reset();
    thread.held_signal_ = 0;
    thread.is_loose_ = thread.release(event.signal);
    return true;
}

void LooseThreads::leave_alone(Thread& thread) {
    if (thread.stopped_) thread.release(0);
    thread.is_loose_ = true;
}

bool LooseThreads::hold(Thread& thread) {
    if (!seizer_.seize_or_yield_to_exec(thread.tid())) {
        const auto error = errno;
        if (!ThreadSeizer::has_ended_or_is_ours(threads_.process(), thread.tid()))
            why_not_held_ = why_not_seized(threads_.process(), error);
        return false;
    }
    thread.is_loose_ = false;
    why_not_held_.clear();
    if (!program_ || program() == program_) return true;
    program_.reset();
    reader_.keep(reader_.missed_exec());
    return false;
}

void LooseThreads::hold_all() {
    if (!threads_.is_any_loose()) return;
    for (auto* const thread : threads_.all())
        if (thread->is_loose() && threads_.find(thread->tid()) == thread) hold(*thread);
    look_for_births_and_ends();
}

void LooseThreads::look_for_births_and_ends() {
    if (!threads_.is_any_loose()) return;
    if (auto* const first = threads_.find(threads_.process());
        first && first->is_loose() && program() != program_) {
        hold(*first);
        return;
    }
    seizer_.seize_possible();
    const auto living = proc::threads_of(threads_.process());
    if (living.empty()) return;
    for (auto* const thread : threads_.all()) {
        if (!thread->is_loose() || std::ranges::find(living, thread->tid()) != living.end())
            continue;
        threads_.remove(thread->tid());
        reader_.keep({.kind = EventKind::thread_gone, .thread = thread});
    }
}

// Of a first thread that is held its tracer hears.
bool LooseThreads::first_is_loose() const {
    const auto* const first = threads_.find(threads_.process());
    return first ? first->is_loose() : threads_.is_any_loose();
}

std::optional<Event> LooseThreads::look_at_process() {
    if (!first_is_loose()) return {};
    pollfd file{process_file_, POLLIN, 0};
    const bool is_gone = poll(&file, 1, 0) > 0;
    int status = 0;
    const auto pid = threads_.process();
    const bool tells = is_child_ && waitpid(pid, &status, WNOHANG | WUNTRACED | __WALL) == pid;
    if (tells && WIFSTOPPED(status))
        reader_.process_was_stopped(WSTOPSIG(status));
    else if (tells || is_gone)
        return reader_.process_is_gone(tells ? std::optional{status} : std::nullopt);
    return {};
}

bool LooseThreads::sleep_until(Clock::time_point deadline) {
    if (!std::ranges::all_of(threads_.all(), &Thread::is_loose)) return false;
    timer_.leave_at(std::min(deadline, Clock::now() + tuning::between_looks_at_loose), [&] {
        pollfd file{process_file_, POLLIN, 0};
        poll(&file, 1, -1);
    });
    return true;
}

}  // namespace shadowprof::ptrace
