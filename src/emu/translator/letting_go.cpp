// How a translated process lets its program go: all leave the cache, which is taken out of it.
#include <chrono>
#include <future>
#include <utility>

#include "emu/translator/translated_process.h"
#include "emu/tuning.h"
#include "proc/process_info.h"

namespace shadowprof::emu::translator {

using ptrace::EventKind;

void TranslatedProcess::let_go(const std::string& reason) {
    // Threads in a call of which a part may have been done are waited for, but may sleep for ever.
    constexpr std::chrono::seconds longest{5}, longest_for_calls{1};
    traffic_.close();
    notes_.saw_everything = false;
    threads_.call_all();
    const auto began = Clock::now();
    const auto deadline = [&] {
        return began + (threads_.any_can_leave() ? longest : longest_for_calls);
    };
    while (tracer_.alive() && (threads_.may_any_be_inside() || threads_.any_awaits_signals()) &&
           Clock::now() < deadline()) {
        settle_sleepers();
        answer();
        if (!wait_and_take(deadline())) break;
    }
    take_out_memory();
    threads_.remove_ended();
    for (auto& [tid, guest] : threads_) {
        if (tracer_.alive())
            for (const auto& signal : guest.held) guest.thread->send(signal.si_signo);
        threads_.read_stream(guest);
        threads_.end(guest, reason, !tracer_.alive());
    }
}

void TranslatedProcess::keep_translations() {
    constexpr std::chrono::milliseconds pause{2};
    const auto kept = std::async(std::launch::async, [this] { cache_.keep(); });
    while (tracer_.alive() && kept.wait_for(std::chrono::seconds{0}) != std::future_status::ready)
        if (!wait_and_take(Clock::now() + pause)) break;
}

// A thread that has left by itself has arrived in its own code, or is still on its way.
void TranslatedProcess::settle_sleepers() {
    for (auto& [tid, guest] : threads_) {
        if (!guest.is_leaving() || guest.thread->stopped() || guest.thread->is_asked()) continue;
        const auto place = proc::goes_on_at(tracer_.pid(), tid);
        if (place && !cache_.translator().is_in_cache(*place))
            guest.state = GuestThread::State::native;
        else if (!place)
            guest.thread->interrupt();
    }
}

void TranslatedProcess::leave_for_good(ptrace::Thread& thread) {
    if (!tracer_.repair_interrupted_call(thread)) traffic_.take_out_if_empty(thread);
    thread.resume();
}

ptrace::Thread* TranslatedProcess::someone_to_take_it_out(bool may_sleep) {
    for (auto* const thread : tracer_.threads())
        if (!thread->stopped() &&
            (proc::is_running(tracer_.pid(), thread->tid()) ||
             (may_sleep && proc::sleeps_soundly(tracer_.pid(), thread->tid()))))
            return thread;
    return nullptr;
}

// By a thread that runs, or, if none does for a while, by one that does not mind being woken. If
// there is none, or a filter of system calls has come over all of them, the memory stays.
void TranslatedProcess::take_out_memory() {
    const auto may_call = [&](const auto* thread) { return cache_.has_same_confinement(*thread); };
    if (std::ranges::none_of(tracer_.threads(), may_call)) return;
    constexpr std::chrono::milliseconds longest{1000}, await_running{100}, pause{5};
    const auto began = Clock::now();
    while (tracer_.alive() && cache_.exists() && cache_.is_in_program() &&
           !threads_.may_any_be_inside() && Clock::now() < began + longest) {
        if (auto* const thread = someone_to_take_it_out(Clock::now() > began + await_running))
            thread->interrupt();
        if (!wait_and_take(Clock::now() + pause)) break;
    }
}

// False: the program has ended, or executes another one, which somebody else has to hear.
bool TranslatedProcess::wait_and_take(Clock::time_point deadline) {
    const auto event = tracer_.wait(deadline);
    if (!event || take(*event)) return true;
    const bool is_over = event->kind == EventKind::process_gone || event->kind == EventKind::exec;
    if (is_over)
        tracer_.give_back(*event);
    else
        tracer_.pass_on(*event);
    return !is_over;
}

}  // namespace shadowprof::emu::translator
