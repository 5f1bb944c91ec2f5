// Forking a replica of a program that must not come to harm if we are killed half-way.
//
// A thread of the program is stopped at an arbitrary instruction and made to call clone(2), with
// registers that are borrowed from the program. So there must be no moment at which only we know
// what they were. What we do, each line one request to the kernel, and what is true after it:
//
//   write a signal frame into a slot  nothing has changed: the frame says how the program goes on
//   set the registers                 the thread is before the stub's first instruction: whether it
//                                     is us or the end of us that lets it go on, it blocks all
//                                     signals, clones, and returns through the frame
//   block its signals                 as the stub would: but now no handler sees the stub. (The
//                                     other way round, our end would leave them blocked.)
//   let it go on
//
// The stub (fork_stub.cpp) uses no stack. Rt_sigreturn(2) sets registers, extended state and the
// signal mask at once, so that a signal is delivered before or after, never between.
//
// The newborn does not return. It writes down its pid, as it sees it, and sleeps until a worker
// thread of ours takes it (replica.cpp), or for a second.
//
// Whose child it is. A program that we started has us as its parent, and a replica made with
// CLONE_PARENT is our child too: the program sees nothing of it at all. (For that reason the
// program is started by a thread that waits for nothing, see launch.cpp: otherwise its siblings
// would be reported to the Tracer.) Where we attached, a child would surprise the program's parent;
// there the replica is made by a child of the program's thread, the intermediary, which ends and is
// reaped, and the replica goes to the namespace's init.
//
// A slot is used again when its newborn has been seen to and its thread is known to have returned
// (visit.h): a frame that is still to be read must not be written.
#include "inject/fork_site.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cstring>
#include <utility>

#include "base/page.h"
#include "base/x86.h"
#include "inject/fork_stub.h"
#include "inject/movable.h"
#include "inject/signal_frame.h"
#include "proc/memory.h"
#include "ptrace/tracee.h"

namespace shadowprof::inject {
namespace {

constexpr std::uint64_t flags_that_disturb = trap_flag | direction_flag | alignment_check_flag;

bool may_have_file_of(std::size_t size) {
    rlimit longest{};
    return getrlimit(RLIMIT_FSIZE, &longest) != 0 || longest.rlim_cur >= size;
}

// A call that our interruption made the kernel break off is issued again by the program: the thread
// is put back to before the call.
void issue_broken_off_call_again(ptrace::Thread& stopped) {
    auto registers = stopped.registers();
    if (!registers || !registers->in_system_call()) return;
    constexpr std::int64_t restart_sys = -512, restart_no_intr = -513, restart_no_hand = -514,
                           restart_block = -516;
    switch (registers->result()) {
        case restart_sys:
        case restart_no_intr:
        case restart_no_hand:
            registers->raw.rax = registers->raw.orig_rax;
            break;
        case restart_block:
            registers->raw.rax = SYS_restart_syscall;
            break;
        default:
            return;
    }
    registers->raw.rip -= ptrace::system_call_length;
    registers->raw.orig_rax = ~0ull;
    stopped.set_registers(*registers);
}

}  // namespace

ForkSite::ForkSite(pid_t pid, bool launched, const Confinement& confinement,
                   std::unique_ptr<SharedArea> area)
    : pid_(pid),
      launched_(launched),
      confinement_(confinement),
      area_(std::move(area)),
      newborns_(*area_, pid, launched),
      finisher_(*area_, pid),
      obstacles_(pid, confinement) {}

std::unique_ptr<ForkSite> ForkSite::create(ptrace::Tracer& tracer, ptrace::Thread& stopped,
                                           std::size_t file_size, std::string& why) {
    if (!may_have_file_of(file_size)) {
        why = "the limit on the size of files (ulimit -f) is too low for a replica's code";
        return {};
    }
    why = why_never_to_fork(tracer.pid(), stopped.tid(), tracer.launched());
    const auto confinement = confinement_of(tracer.pid(), stopped.tid());
    if (!why.empty() || !confinement) return {};
    auto area = SharedArea::put_into(tracer, stopped, file_size, why);
    if (!area) {
        if (why.empty() && dispatches_system_calls(stopped.tid()))
            why = because_it_dispatches_its_calls;
        return {};
    }
    if (area->process_adopts_orphans() && !tracer.launched()) {
        why = because_it_adopts;
        return {};
    }
    std::unique_ptr<ForkSite> fork_site{
        new ForkSite(tracer.pid(), tracer.launched(), *confinement, std::move(area))};
    fork_site->prepare();
    return fork_site;
}

std::optional<PendingReplica> ForkSite::fork(ptrace::Thread& stopped, bool stops_at_calls) {
    if (!free_slot_ || obstacles_.to_any_thread()) prepare();
    obstacle_ = obstacles_.to_any_thread();
    if (!free_slot_ || obstacle_) return {};
    const auto state = state_if_movable(stopped);
    if (!state) {
        if (dispatches_system_calls(stopped.tid()))
            obstacle_ = Obstacle{because_it_dispatches_its_calls};
        return {};
    }
    if (place().contains(state->registers.rip()) ||
        is_about_to_resume_a_sleep(stopped, state->registers))
        return {};
    const auto& [status, obstacle, is_confined] =
        obstacles_.look_at(stopped, state->was_in_system_call);
    obstacle_ = obstacle;
    if (obstacle_ || status.empty()) return {};
    for (auto& visit : visits_) visit.end_if_by(stopped.tid());
    auto extended = stopped.extended_state();
    if (!extended) return {};
    if (extended->has_tiles()) {
        obstacle_ = Obstacle{because_of_tiles, true};
        return {};
    }
    const auto index = *free_slot_;
    auto& slot = area_->slot(index);
    const auto place_of_slot = area_->place_of_slot(index);
    if (!write_signal_frame(slot.frame, place_of_slot + StubSlot::head_size, state->registers,
                            *extended, state->signal_mask))
        return {};
    obstacle_ = claim(index, stopped);
    if (obstacle_) return {};

    auto there = state->registers;
    const auto way = stub();
    there.raw.rip = (place().begin + (launched_ ? way.fork_sibling : way.fork_grandchild)).value;
    there.raw.rbx = place_of_slot.value;
    there.raw.eflags &= ~flags_that_disturb;
    PendingReplica pending{index,
                           forks_,
                           state->registers,
                           std::move(*extended),
                           Clock::now(),
                           state->signal_mask,
                           stopped.tid(),
                           {},
                           {}};
    if (!stopped.set_registers(there) || !stopped.set_signal_mask(ptrace::all_signals) ||
        !(stops_at_calls ? stopped.resume_to_system_call() : stopped.resume()))
        return {};
    if (const auto signals = proc::signal_sets_in(status)) pending.signals = *signals;
    pending.identity = proc::identity_in(status);
    numbers_.at(index) = pending.number;
    visits_.at(index).begin(stopped.tid());
    newborns_.expect(pending);
    free_slot_.reset();
    return pending;
}

// After an exec the area is not there any more. And a program that makes all its memory read-only,
// so that SIGSEGV reports what it writes to, would be sent one for the stub, while all signals are
// blocked.
std::optional<Obstacle> ForkSite::claim(std::uint32_t index, const ptrace::Thread& stopped) {
    auto& slot = area_->slot(index);
    slot.number = ++forks_;
    slot.to_reap = 0;
    const auto place_of_slot = area_->place_of_slot(index);
    const auto seen = ptrace::word_at(stopped.tid(), place_of_slot + offsetof(StubSlot, number));
    std::uint64_t code = 0;
    std::memcpy(&code, stub().code.data(), sizeof code);
    const bool is_there = seen && static_cast<std::uint32_t>(*seen) == forks_ &&
                          ptrace::word_at(stopped.tid(), place().begin) == code;
    const auto to_reap = std::as_bytes(std::span{&slot.to_reap, 1});
    if (is_there &&
        proc::Memory{stopped.tid()}.write(place_of_slot + offsetof(StubSlot, to_reap), to_reap))
        return {};
    slot.number = numbers_.at(index);
    return Obstacle{is_there ? "it has made shadowprof's memory read-only"
                    : seen   ? "it has put something else in the place of shadowprof's memory"
                             : "its memory cannot be read (any more)"};
}

bool ForkSite::is_confined_anew(const ptrace::Thread& stopped) {
    const auto registers = stopped.registers();
    return obstacles_.look_at(stopped, !registers || registers->in_system_call()).is_confined_anew;
}

// The filter has let the call pass, but may judge it by where it comes from, too.
bool ForkSite::finish_call(ptrace::Thread& stopped, RestOfCall rest) {
    return may_be_removed_by(stopped) && area_->is_there() &&
           finisher_.finish(stopped, std::move(rest));
}

// Of the thread that used the slot last.
bool ForkSite::has_returned(std::size_t number) {
    const auto& slot = area_->slot(number);
    auto& visit = visits_.at(number);
    if (visit.is_over()) return true;
    return load_acquire(slot.complete) == numbers_.at(number) && visit.is_over(pid_, place());
}

bool ForkSite::is_free(std::size_t number) {
    return has_returned(number) && newborns_.is_settled(number);
}

void ForkSite::prepare() {
    free_slot_.reset();
    for (std::uint32_t candidate = 0; candidate < SharedArea::slots; ++candidate)
        if (is_free(candidate)) free_slot_ = candidate;
    obstacles_.look_around();
}

bool ForkSite::has_returned(const PendingReplica& pending) const {
    return load_acquire(area_->slot(pending.slot).complete) == pending.number;
}

void ForkSite::await_return(const PendingReplica& pending) const {
    const auto& slot = area_->slot(pending.slot);
    const auto given_up = pending.begun + tuning::longest_await_of_return;
    for (auto now = Clock::now(); !has_returned(pending) && now < given_up; now = Clock::now()) {
        if (const auto newborn = load_acquire(slot.newborn); newborn != pending.number)
            await_change(slot.newborn, newborn, given_up - now);
        else
            sched_yield();
    }
}

// A filter that came later may forbid any call.
bool ForkSite::may_be_removed_by(const ptrace::Thread& stopped) const {
    return confinement_of(pid_, stopped.tid()) == confinement_ &&
           !dispatches_system_calls(stopped.tid());
}

bool ForkSite::remove(ptrace::Tracer& tracer, ptrace::Thread& stopped) {
    if (!may_be_removed_by(stopped)) return false;
    issue_broken_off_call_again(stopped);
    const auto state = state_if_movable(stopped);
    if (!state || place().contains(state->registers.rip())) return false;
    for (auto& visit : visits_) visit.end_if_by(stopped.tid());
    for (std::size_t number = 0; number < SharedArea::slots; ++number)
        if (!has_returned(number)) return false;
    if (finisher_.is_in_use()) return false;
    return !area_->is_there() || area_->remove(tracer, stopped);
}

}  // namespace shadowprof::inject
