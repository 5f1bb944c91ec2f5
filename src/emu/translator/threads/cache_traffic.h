// Threads on their way into the code cache and out of it.
//
// The cache is emptied when it is full, or when code of the program has changed: every thread is
// called out, those that leave are parked, and when nobody is inside it is emptied and all of them
// enter again. When the program is let go, nobody enters any more, and the first thread that leaves
// after all others takes the cache's memory out of the program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emu/translator/program_cache.h"
#include "emu/translator/threads/guest_threads.h"
#include "ptrace/registers.h"

namespace shadowprof::emu::translator {

// Why a thread runs on natively that has set the trap flag.
inline constexpr const char* steps_itself = "trap flag";

// What a user should know about the run.
struct RunNotes {
    bool saw_everything = true;
    std::vector<std::string> warnings;
};

class CacheTraffic {
  public:
    CacheTraffic(ProgramCache& cache, GuestThreads& threads, RunNotes& notes)
        : cache_(cache), threads_(threads), notes_(notes) {}

    // A thread that waits for an answer, and whose burst is over, goes on in its own code.
    void answer_natively(GuestThread& guest);
    // A thread that has left, or is about to, and is stopped, is in its own code.
    // False: it is not, and has not left in truth; the program has written that.
    bool settle(GuestThread& guest);
    // A stopped thread with these registers goes on: in the cache if that is possible, else until
    // its next system call natively.
    void enter(GuestThread& guest, const ptrace::Registers& native);
    // A thread that waits for an answer goes on at its area's `pc`, in the cache.
    void answer(GuestThread& guest);
    // A thread that is stopped in the cache becomes native, with these registers, and stays
    // stopped. `stream` is where it would have written next.
    void leave(GuestThread& guest, const ptrace::Registers& native, std::uint64_t stream);
    // The same, of a thread that stands at a call that it makes from the cache (FixedCode). Returns
    // the registers.
    ptrace::Registers leave_in_call(GuestThread& guest, const FixedCode& fixed,
                                    const ptrace::Registers& in_cache);
    // A stopped native thread goes on as such, and gets the signals that are held one by one. Each
    // has it stopped at the first instruction of its handler.
    void await_signals_outside(GuestThread& guest);
    // The thread goes on untranslated for the rest of its life.
    void run_natively(GuestThread& guest, const ptrace::Registers& native, const std::string& why);
    // The same, and the user is told.
    void run_on_unprofiled(GuestThread& guest, const ptrace::Registers& native,
                           const std::string& why);
    // All that are held are sent again at once, in their order: the thread is native, and stays so.
    static void give_signals_back(GuestThread& guest);
    // Of a thread whose signals come too often: what need not be delivered by us.
    static void give_timers_signals_back(GuestThread& guest);
    // If the thread was taken to be in the cache, and is elsewhere, the program has changed what
    // only we change. Then it is native, with these registers, and true is returned.
    bool look_whether_astray(GuestThread& guest, ptrace::Registers& registers);
    // The number of the held signal that a stopped thread is to get now.
    std::optional<std::size_t> deliverable(const GuestThread& guest) const;
    // Makes a thread that is stopped somewhere in the cache leave it soon.
    void call_out(GuestThread& guest, ptrace::Registers registers);
    // The same, of a thread that had been called out and was stopped by yet another signal: no more
    // come until it has left, for it might never do so. What it does itself may still fault.
    void call_out_undisturbed(GuestThread& guest, const ptrace::Registers& registers);
    // Where the thread, stopped in the cache, would write next.
    std::uint64_t stream_of(const GuestThread& guest, const ptrace::Registers& in_cache) const;

    // If nobody is inside any more, this stopped thread takes the cache's memory out of the
    // program.
    void take_out_if_empty(ptrace::Thread& thread);
    void begin_emptying();
    // If code has gone, or the cache is full.
    void look_whether_to_empty();
    void empty_if_nobody_is_inside();
    void stop_emptying() { is_emptying_ = false; }
    // Nobody enters any more: the program is let go.
    void close() { is_closed_ = true; }
    bool is_closed() const { return is_closed_; }
    // The same, for this reason: whoever leaves goes on untranslated.
    void abandon(const char* why) { abandoned_ = why; }
    const char* why_abandoned() const { return abandoned_; }
    bool calls_everybody_out() const { return is_closed_ || abandoned_ != nullptr; }
    bool may_enter() const { return !is_emptying_ && !calls_everybody_out(); }

  private:
    static void has_become_native(GuestThread& guest);
    void go_on_at(GuestThread& guest, Address place);
    void drive(GuestThread& guest);
    // Where the thread would enter at `pc`. Nothing if there is no code, or the cache is being
    // emptied.
    std::optional<Address> entry_for(const GuestThread& guest, Address pc);
    void leave_for_signals(GuestThread& guest, const ptrace::Registers& native);
    void go_on_outside(GuestThread& guest, const ptrace::Registers& native);
    static void send_again(GuestThread& guest, std::size_t number);
    void send_held_signal(GuestThread& guest, const ptrace::Registers& native, std::size_t number);
    void enter_at(GuestThread& guest, const ptrace::Registers& native, Address place);

    ProgramCache& cache_;
    GuestThreads& threads_;
    RunNotes& notes_;
    bool is_emptying_ = false;
    bool is_closed_ = false;
    const char* abandoned_ = nullptr;
};

}  // namespace shadowprof::emu::translator
