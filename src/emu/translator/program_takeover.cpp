#include "emu/translator/program_takeover.h"

#include "emu/tuning.h"
#include "inject/movable.h"
#include "proc/process_info.h"

namespace shadowprof::emu::translator {

void ProgramTakeover::take_over() {
    threads_.remove_ended();
    for (auto* const thread : tracer_.threads())
        if (threads_.find(thread->tid()) == nullptr) {
            threads_.add(*thread, false).arriving = true;
            notes_.saw_everything = false;
        }
    if (cache_.is_given_up() || traffic_.is_closed()) return;
    const auto call = [](GuestThread& guest) {
        guest.called = true;
        guest.thread->interrupt();
    };
    GuestThread* sleeper = nullptr;
    for (auto& [tid, guest] : threads_) {
        if (!guest.arriving || guest.called || guest.thread->stopped()) continue;
        if (cache_.exists()) {
            call(guest);
        } else if (proc::is_running(tracer_.pid(), tid)) {
            return call(guest);
        } else {
            sleeper = &guest;
        }
    }
    if (sleeper) call(*sleeper);
}

void ProgramTakeover::arrive(GuestThread& guest) {
    if (tracer_.repair_interrupted_call(*guest.thread)) {
        guest.thread->resume_to_system_call();
        return;
    }
    auto state = inject::state_if_movable(*guest.thread);
    if (state && !cache_.exists() && !cache_.is_given_up()) {
        std::string why;
        threads_.ends_may_be_missed();
        if (cache_.make(*guest.thread, why)) {
            take_over();
        } else if (++failures_ == tuning::attempts_to_take_over) {
            cache_.give_up();
            notes_.warnings.push_back("the program runs unprofiled: it cannot be translated (" +
                                      why + ")");
        }
        state = inject::state_if_movable(*guest.thread);
    }
    if (!state || !(cache_.exists() || cache_.is_given_up())) {
        guest.thread->resume_to_system_call();
        return;
    }
    guest.arriving = false;
    if (cache_.is_given_up())
        return traffic_.run_natively(guest, state->registers, "not translated");
    if (inject::uses_restartable_sequences(*guest.thread)) {
        // The kernel would not recognise the translated sequences.
        notes_.warnings.push_back("a thread runs on unprofiled: it uses restartable sequences");
        return traffic_.run_natively(guest, state->registers, "restartable sequences");
    }
    guest.thread->report_exit();
    traffic_.enter(guest, state->registers);
}

}  // namespace shadowprof::emu::translator
