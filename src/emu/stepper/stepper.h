// The stepper: the slow engine that is beyond doubt. The CPU executes every instruction, the kernel
// stops the thread after each (PTRACE_SINGLESTEP), and the stepper writes down what it sees. The
// other engines are judged against it.
//
// It is driven by events: after begin() the thread's events go to on_event() until that says that
// the sample is over, so that other threads' signals never wait for it.
//
// What stepping does to a program, and how it is kept from showing:
//  - The trap after a step is a forced SIGTRAP. If the program blocks SIGTRAP (glibc blocks all
//    signals in pthread_create, posix_spawn, abort …) the kernel would unblock it and reset its
//    handler. So SIGTRAP is taken out of the thread's mask while it steps, and the program's own
//    mask is put back whenever the program or a signal frame could see it: at system calls and at
//    signal delivery. If the program ignores SIGTRAP, nothing of this helps, and the sample ends.
//  - System calls are not stepped over but stopped at (PTRACE_SYSCALL): no trap is forced there,
//    and r11 holds no trap flag.
//  - pushf stores the trap flag: it is cleared in the stored word.
//  - popf and iret load it, and while they are stepped the kernel leaves the flag to them. If the
//    next resumption were another step it would take the flag for the program's own and never clear
//    it, so the thread is first stopped once more by other means.
//  - cpuid, where its step is lost (ptrace/lost_steps.h): it is not stepped, its result is written
//    to the registers.
//  - REP instructions trap after every iteration: only the last one completes the instruction.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "emu/common/guest_code.h"
#include "emu/common/trace_recorder.h"
#include "ptrace/tracer.h"

namespace shadowprof::emu {

class Stepper {
  public:
    // The thread is stopped. `most_instructions` 0: until it exits.
    Stepper(ptrace::Tracer& tracer, ptrace::Thread& thread, GuestCode& code, trace::TraceSink& sink,
            trace::TraceId trace, std::uint64_t most_instructions);

    enum class State { running, finished };

    State begin();
    // The same for a thread stopped by its exec event.
    State begin_after_exec();
    // When the sample is finished, the thread is stopped where the program left it, unless it has
    // exited, and belongs to the program again: it has to be resumed.
    State on_event(const ptrace::Event& event);
    // Ends the sample at the thread's next event, or now if it is stopped.
    void request_end(std::string reason);
    // Ends the Trace of a thread that is inside a system call and may stay there for ever.
    void give_up(std::string reason);
    bool in_system_call() const { return in_system_call_; }

    // What chunks say of the thread, which may change; to be called before it begins.
    void tell_state(std::function<trace::ThreadState()> now) {
        recorder_.tell_state(std::move(now));
    }
    ptrace::Thread& thread() { return thread_; }
    // A signal that was about to be delivered when the sample ended: resume the thread with it.
    int undelivered_signal() const { return undelivered_signal_; }
    std::uint64_t instructions() const { return recorder_.instructions() + index_; }

  private:
    State go_on(int signal = 0);
    State step_instruction(int signal);
    State execute_cpuid();
    State enter_system_call(int signal);
    State on_stepped(const ptrace::Event& event);
    State on_system_call_exit();
    State on_signal(const ptrace::Event& event);
    State on_exec();
    State finish(std::string reason);
    State thread_is_gone();

    void capture_before(const decoder::Instruction& instruction);
    std::uint64_t error_at(std::int32_t displacement) const;
    void capture_after(const decoder::Instruction& instruction);
    void complete_instruction();
    Address continuation() const;
    void leave_block();  // control goes elsewhere: publish what was executed of the current block
    bool hide_trap_signal();
    void restore_signal_mask();

    ptrace::Tracer& tracer_;
    ptrace::Thread& thread_;
    GuestCode& code_;
    TraceRecorder recorder_;
    std::uint64_t most_instructions_;

    ptrace::Registers registers_;
    const trace::Block* block_ = nullptr;  // the block being executed; nullptr between blocks
    std::size_t index_ = 0;                // its next instruction
    std::size_t slot_ = 0;                 // its next slot
    std::size_t values_before_instruction_ = 0;
    bool captured_before_ = false;  // the next instruction's addresses are captured already
    bool in_system_call_ = false;
    bool entering_handler_ = false;
    bool loaded_flags_ = false;  // the last instruction was popf or iret
    std::optional<std::uint64_t>
        hidden_mask_;  // the program's mask while SIGTRAP is taken out of it
    std::optional<std::string> end_requested_;
    int undelivered_signal_ = 0;
};

}  // namespace shadowprof::emu
