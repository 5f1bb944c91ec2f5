// A whole program run from the code cache, with its real system calls and signals.
//
// Each thread is in one of two states. In the *cache* it executes translated code: gs points to its
// area, r15 to where it writes down what it does. Otherwise it is *native*: its registers are the
// guest's own. It is native in every system call, whenever a signal is delivered, and whenever a
// thread or process is born, so that the kernel never sees anything of ours: not in a signal frame,
// not in the registers of a new thread, not in a child, and a profiler that dies leaves behind a
// thread that goes on by itself.
//
// In a program that runs already, threads are native until they can be taken into the cache: those
// that run at once, those that sleep when their system call returns.
//
// A thread leaves the cache by a system call, its own or one that asks us for something (Request).
// A signal that finds a thread somewhere in the cache waits until it does, which we make it do
// soon: its stream pointer is moved to the alias, and the next unit notices. A fault is delivered
// at once: it happens at an instruction of the guest, for which the code's marks say where the
// guest's registers are.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "emu/common/guest_code.h"
#include "emu/translator/guest_registers.h"
#include "emu/translator/hot_code.h"
#include "emu/translator/shared_memory.h"
#include "emu/translator/thread_recording.h"
#include "emu/translator/translator.h"
#include "inject/fork_conditions.h"
#include "ptrace/tracer.h"
#include "trace/segment.h"
#include "trace/trace.h"

namespace shadowprof::emu::translator {

struct RunOptions {
    ValueSampling values;
    LoadSampling loads;
    std::uint64_t seed = 0;
    bool nothing_random = false;  // it was launched without address randomisation
};

class TranslatedProcess {
  public:
    TranslatedProcess(ptrace::Tracer& tracer, GuestCode& code, trace::SegmentTable& segments,
                      trace::TraceSink& sink, trace::IdAllocator& numbers, RunOptions options);
    ~TranslatedProcess();

    // Of a program that runs already: takes its threads, those that are not ours yet. The first one
    // that can makes room for the cache; until has_begun(), and when new ones may have been found,
    // this is to be called again.
    void take_over();
    bool has_begun() const { return memory_ != nullptr || cannot_translate_; }

    // False: not of a thread of ours.
    bool take(const ptrace::Event& event);
    // Every thread goes on natively.
    void let_go(const std::string& reason);
    // The process has ended.
    void process_gone();

    trace::SampleId sample() const { return sample_; }
    bool saw_everything() const { return saw_everything_; }
    const std::vector<std::string>& warnings() const { return warnings_; }

  private:
    enum class State : std::uint8_t { native, in_cache };

    struct Guest {
        ptrace::Thread* thread = nullptr;
        State state = State::native;
        bool untranslated = false;  // for the rest of its life
        bool in_system_call = false;
        bool arriving = false;  // native until it can be taken into the cache, for the first time
        bool called = false;    // … and it has been interrupted for that
        bool asks = false;      // on its way through the system call of a request
        std::optional<std::uint32_t> area;
        trace::TraceId trace{};
        std::optional<ThreadRecording> recording;
        Address expected;  // behind the system call
        // A signal is being delivered to a handler; it would have gone on here.
        std::optional<Address> entering_handler;
        std::deque<siginfo_t> held;  // signals, until the thread leaves the cache
        std::optional<siginfo_t> redelivered;
        std::optional<ptrace::Registers> parked;  // native, while the cache is being emptied
    };

    Guest& add_guest(ptrace::Thread& thread, bool from_its_start);
    void begin_thread(ptrace::Thread& thread);
    void begin_program(Guest& guest);
    bool make_cache(ptrace::Thread& thread, std::string& why);
    void arrive(Guest& guest);
    void on_exec(Guest& guest);
    void on_system_call_entry(Guest& guest);
    void on_system_call_exit(Guest& guest);
    void on_request(Guest& guest, ptrace::Registers registers);
    void on_signal(Guest& guest, const ptrace::Event& event);
    void on_fault(Guest& guest, const ptrace::Registers& registers,
                  const Translator::Position& position, const ptrace::Event& event);
    void on_interrupted(Guest& guest);
    void end_thread(Guest& guest, std::string reason, bool exited);

    void enter(Guest& guest, const ptrace::Registers& native);
    void enter_at(Guest& guest, const ptrace::Registers& native, Address place);
    void run_natively(Guest& guest, const ptrace::Registers& native, const std::string& why);
    void leave_cache(Guest& guest, const ptrace::Registers& native, std::uint64_t stream);
    bool admit(Guest& guest);
    void on_exiting(Guest& guest);
    void take_out_memory();
    void forget_ended_threads();
    void deliver(Guest& guest, int signal, Address continuation);
    void call_out(Guest& guest, ptrace::Registers registers);

    void check_mappings(const ptrace::Registers& call);
    void check_epoch();
    void begin_emptying();
    void empty_cache();
    bool nobody_is_inside() const;

    void read_stream(Guest& guest);

    ptrace::Tracer& tracer_;
    GuestCode& code_;
    trace::SegmentTable& segments_;
    SegmentWork work_;
    trace::TraceSink& sink_;
    RunOptions options_;
    Random random_;
    std::unique_ptr<SharedMemory> memory_;
    std::unique_ptr<Translator> translator_;
    std::unique_ptr<HotCode> hot_code_;
    std::map<pid_t, Guest> guests_;
    std::uint64_t epoch_ = 0;
    bool emptying_ = false;
    trace::IdAllocator& numbers_;
    trace::SampleId sample_;  // all that runs
    bool saw_everything_ = true;
    bool cannot_translate_ = false;
    std::optional<inject::Confinement> confinement_;  // that all had when the cache was made
    bool ends_may_be_missed_ = false;  // nobody hears of threads that end while calls are planned
    bool has_memory_ = false;          // the target has what we share
    unsigned failures_to_begin_ = 0;
    std::optional<std::string> letting_go_;
    std::vector<std::string> warnings_;
};

}  // namespace shadowprof::emu::translator
