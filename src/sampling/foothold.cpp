#include "sampling/foothold.h"

#include "base/clock.h"
#include "emu/translator/replica_cache.h"
#include "inject/rest_of_call.h"
#include "proc/process_info.h"
#include "sampling/schedule/choose_thread.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

bool Foothold::gain(ptrace::Thread& stopped) {
    if (!why_never_.empty()) return false;
    fork_site_ = inject::ForkSite::create(tracer_, stopped,
                                          emu::translator::ReplicaCache::file_size, why_never_);
    return fork_site_ != nullptr;
}

bool Foothold::finish_call(ptrace::Thread& stopped) {
    const auto undone = inject::rest_of_call(tracer_.pid(), stopped);
    return undone && make_rest(stopped, *undone);
}

bool Foothold::make_rest(ptrace::Thread& stopped, const inject::RestOfCall& undone) {
    return (fork_site_ || gain(stopped)) && fork_site_->finish_call(stopped, undone);
}

// A signal that the program ignores may have broken off a call as well. A thread that is about to
// be given a signal does nothing else: it does that first.
bool Foothold::stops_again_to_finish(const ptrace::Event& event) {
    const bool has_signal = event.kind == ptrace::EventKind::signal;
    if (!has_signal && event.kind != ptrace::EventKind::interrupted) return false;
    auto& thread = *event.thread;
    const auto undone = inject::rest_of_call(tracer_.pid(), thread);
    if (!undone || make_rest(thread, *undone)) return false;
    return has_signal && why_never_.empty() && thread.stop_again(event.signal);
}

void Foothold::forget() {
    fork_site_.reset();
    why_never_.clear();
}

// By a thread that runs, or, if none does for a while, by one that does not mind being woken.
ptrace::Thread* Foothold::someone_to_remove_it(ThreadList& threads, Random& random, bool may_rest) {
    if (auto* const running = choose_running_thread(threads, random)) return running;
    if (!may_rest) return nullptr;
    for (auto* const thread : tracer_.threads())
        if (!thread->stopped() && proc::sleeps_soundly(tracer_.pid(), thread->tid())) return thread;
    return nullptr;
}

void Foothold::leave_no_trace(ThreadList& threads, Random& random) {
    const auto began = Clock::now();
    auto ask_from = began;
    for (auto now = began; tracer_.alive() && now < began + tuning::await_removal;
         now = Clock::now()) {
        if (!tracer_.is_anyone_asked() && now >= ask_from) {
            if (!fork_site_ || !tracer_.why_not_held().empty()) break;
            const bool may_rest = now > began + tuning::await_running_thread;
            if (auto* const thread = someone_to_remove_it(threads, random, may_rest))
                thread->interrupt();
        }
        const auto event = tracer_.wait(Clock::now() + std::chrono::milliseconds{2});
        if (!event) continue;
        // That is the session's to hear, and of the program that was there is nothing left.
        if (event->kind == ptrace::EventKind::process_gone ||
            event->kind == ptrace::EventKind::exec) {
            tracer_.give_back(*event);
            break;
        }
        const bool is_finishing = event->thread && finish_call(*event->thread);
        if (is_finishing) ask_from = Clock::now() + tuning::await_rest_of_call;
        if (event->kind != ptrace::EventKind::interrupted || is_finishing || !fork_site_ ||
            tracer_.is_anyone_asked()) {
            tracer_.pass_on(*event);
            continue;
        }
        auto& thread = *event->thread;
        tracer_.repair_interrupted_call(thread);
        const bool stays = !fork_site_->may_be_removed_by(thread);
        const bool done = !stays && fork_site_->remove(tracer_, thread);
        thread.resume();
        if (done || stays) break;
    }
    fork_site_.reset();
}

}  // namespace shadowprof::sampling
