// Signals of a program that runs from the code cache.
//
// A handler must find the guest's own registers in its frame, so a signal is delivered only to a
// native thread. A signal that finds a thread somewhere in the cache is held until the thread has
// been called out. A fault cannot wait: it happens at an instruction of the guest, for which the
// marks of the code say where the guest's registers are, and the thread leaves right there.
#pragma once

#include "emu/translator/threads/cache_traffic.h"

namespace shadowprof::emu::translator {

class SignalDelivery {
  public:
    SignalDelivery(ptrace::Tracer& tracer, ProgramCache& cache, GuestThreads& threads,
                   CacheTraffic& traffic)
        : tracer_(tracer), cache_(cache), threads_(threads), traffic_(traffic) {}

    void on_signal(GuestThread& guest, const ptrace::Event& event);
    // A thread that was to enter a handler is stopped at the handler's first instruction.
    void on_handler(GuestThread& guest, const ptrace::Registers& registers,
                    const GuestThread::Interrupted& from);

  private:
    static std::optional<siginfo_t> next_of_its_kind(GuestThread& guest, const siginfo_t& arrived);
    void on_signal_outside(GuestThread& guest, const ptrace::Event& event,
                           const ptrace::Registers& registers, bool caught);
    void on_fault(GuestThread& guest, const ptrace::Registers& registers,
                  const Translator::Position& position, const ptrace::Event& event);
    // Lets the kernel build the handler's frame, and stops the thread there.
    void deliver(GuestThread& guest, int signal, const GuestThread::Interrupted& from);

    ptrace::Tracer& tracer_;
    ProgramCache& cache_;
    GuestThreads& threads_;
    CacheTraffic& traffic_;
};

}  // namespace shadowprof::emu::translator
