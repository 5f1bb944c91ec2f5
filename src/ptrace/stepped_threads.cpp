#include "ptrace/stepped_threads.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

#include "ptrace/system.h"
#include "ptrace/tuning.h"

namespace shadowprof::ptrace {

namespace {

struct Stepped {
    std::atomic<pid_t> tid{0}, by{0};  // `by` is set last and cleared first; 0: the place is free
    std::atomic<bool> is_taken{false};
};
std::array<Stepped, tuning::most_stepped_threads> all_stepped;

// A trap that the program would not have had without us: what the kernel reports at the end of a
// step, when a step has come to a handler, or at a ptrace event.
bool is_of_tracing(const siginfo_t& info) {
    constexpr int entered_handler = SIGTRAP, greatest_of_signals = 0xff;
    return info.si_signo == SIGTRAP &&
           (info.si_code == TRAP_TRACE || info.si_code == entered_handler ||
            info.si_code > greatest_of_signals);
}

// The kernel queues a step's trap behind other stops.
bool is_trap_pending(pid_t tid) {
    constexpr int most = 32;
    std::array<siginfo_t, most> pending;
    __ptrace_peeksiginfo_args which{.off = 0, .flags = 0, .nr = most};
    const auto count =
        request(PTRACE_PEEKSIGINFO, tid, reinterpret_cast<std::uint64_t>(&which), pending.data());
    for (long n = 0; n < count; ++n)
        if (is_of_tracing(pending[static_cast<std::size_t>(n)])) return true;
    return false;
}

// False if it is not stopped.
bool detach(pid_t tid) {
    siginfo_t info{};
    const bool has_signal = request(PTRACE_GETSIGINFO, tid, 0, &info) == 0;
    if (is_trap_pending(tid)) {
        request(PTRACE_CONT, tid);  // as far as the trap
        return false;
    }
    const auto signal = has_signal && !is_of_tracing(info) ? info.si_signo : 0;
    return request(PTRACE_DETACH, tid, static_cast<std::uint64_t>(signal)) == 0;
}

void pause_shortly() {
    const timespec moment{0, std::chrono::nanoseconds{tuning::between_looks_detaching}.count()};
    nanosleep(&moment, nullptr);
}

template <typename Predicate>
void await(Predicate is_so) {
    for (auto looks = tuning::longest_detaching / tuning::between_looks_detaching; looks > 0;
         --looks) {
        if (is_so()) return;
        pause_shortly();
    }
}

void let_go_of(pid_t tid) {
    bool is_asked = false;
    await([&] {
        if (detach(tid)) return true;
        const bool is_gone = !is_asked && request(PTRACE_INTERRUPT, tid) != 0;
        is_asked = true;
        return is_gone;
    });
}

}  // namespace

void SteppedMark::set(pid_t tid) {
    if (place_ != none) return;
    for (std::size_t place = 0; place < all_stepped.size(); ++place) {
        auto& entry = all_stepped[place];
        if (entry.is_taken.exchange(true)) continue;
        entry.tid = tid;
        entry.by = gettid();
        place_ = place;
        return;
    }
}

void SteppedMark::clear() {
    if (place_ == none) return;
    auto& entry = all_stepped[place_];
    entry.by = 0;
    entry.is_taken = false;
    place_ = none;
}

void let_go_of_stepped(int signal) {
    const pid_t us = gettid();
    for (auto& entry : all_stepped) {
        if (entry.by != us) continue;
        let_go_of(entry.tid);
        entry.by = 0;
    }
    for (auto& entry : all_stepped) {
        const pid_t other = entry.by;
        // It may have ended, or this is a copy of the process that steps.
        if (other == 0 || tgkill(getpid(), other, signal) != 0) continue;
        await([&] { return entry.by != other; });
    }
}

}  // namespace shadowprof::ptrace
