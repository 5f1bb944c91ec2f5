// A whole program run from the code cache, with its real system calls and signals.
//
// Each thread is in one of two states. In the *cache* it executes translated code: gs points to its
// area, r15 to where it writes down what it does. Otherwise it is *native*: its registers are the
// guest's own. It is native whenever a signal is delivered to a handler and whenever a thread or
// process is created, so that the kernel never sees anything of ours: not in a signal frame, not in
// the registers of a new thread, not in a child. If the profiler dies, the thread goes on by
// itself.
//
// A thread that needs something (Request) asks by memory and waits in the cache for the answer. It
// is stopped only if it has to become native. It makes most system calls from the cache, too. When
// a signal or an interruption finds it in one, it becomes native right there: the kernel does not
// care where the call came from. To make a thread ask soon, its stream pointer is moved to the
// alias, and the next unit notices.
//
// The jobs are shared out like this:
//   ProgramCache      the cache itself, from one exec to the next
//   GuestThreads      the threads, and their Traces
//   CacheTraffic      into the cache, out of it, and emptying it
//   SignalDelivery    signals and faults
//   ProgramTakeover   threads of a program that was already running
//   TranslatedProcess takes ptrace's events, and deals with system calls, requests, exec and exit
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "emu/common/guest_code.h"
#include "emu/translator/in_place/burst.h"
#include "emu/translator/program_cache.h"
#include "emu/translator/program_takeover.h"
#include "emu/translator/threads/cache_traffic.h"
#include "emu/translator/threads/guest_threads.h"
#include "emu/translator/threads/signal_delivery.h"
#include "emu/tuning.h"
#include "ptrace/tracer.h"
#include "trace/segment.h"
#include "trace/trace.h"

namespace shadowprof::emu::translator {

struct RunOptions {
    ValueSampling values;
    LoadSampling loads;
    std::uint64_t seed = 0;
    bool nothing_random = false;  // it was launched without address randomisation
    // Threads run natively, but for bursts.
    bool in_bursts = false;
    trace::ThreadState (*state_now)(pid_t pid, pid_t tid) = nullptr;  // see ThreadRecording
};

class TranslatedProcess {
  public:
    TranslatedProcess(ptrace::Tracer& tracer, GuestCode& code, trace::SegmentTable& segments,
                      trace::TraceSink& sink, trace::IdAllocator& numbers, KnownCode& known,
                      RunOptions options);

    // See ProgramTakeover. To be called until has_begun(), and whenever new threads may have been
    // found.
    void take_over() { takeover_.take_over(); }
    bool has_begun() const { return cache_.exists() || cache_.is_given_up(); }

    // In bursts. Puts the cache into the program, by a stopped thread, which is then let go on.
    // When that was. Nothing, and `why`, if it is impossible at this moment: then it is still
    // stopped.
    std::optional<Clock::time_point> make_cache(ptrace::Thread& thread, std::string& why);
    // A stopped thread with these registers executes a burst, whose Trace has begun. Returns when
    // it went on.
    Clock::time_point begin_burst(ptrace::Thread& thread, const ptrace::Registers& registers,
                                  const trace::TraceStart& start, BurstLength length);
    // Whether we answer from a processor that nobody else wants.
    void answers_at_once(bool they_do) {
        cache_.memory().exchange().rounds =
            they_do ? tuning::spins_in_burst : tuning::spins_without_processor;
    }
    // It is in a burst; it may be on its way out of one that is over.
    bool is_in_burst(const ptrace::Thread& thread) const;
    bool has_open_bursts() const { return threads_.any_with_open_trace(); }
    std::vector<BurstOutcome> outcomes() { return threads_.outcomes(); }
    // A thread is, or was, at this place: code from there on is likely to be executed in bursts.
    void expect(Address pc);
    // The process executes another program.
    void program_is_new();

    // Answers the threads that have asked for something, and notices those that have left. False:
    // nobody has asked.
    bool answer();
    // See Translator::work_ahead().
    bool work_ahead();
    // False: the event is not of a thread of ours.
    bool take(const ptrace::Event& event);
    // In bursts: why there can be no more, if that is so; the last two look at the memory that is
    // shared with the program, from its list of mappings or in a stopped thread.
    const char* why_abandoned() const { return traffic_.why_abandoned(); }
    void look_at_memory(const proc::Maps& maps);
    void look_at_memory(const ptrace::Thread& stopped);
    // Every thread goes on natively.
    void let_go(const std::string& reason);
    // Then: writes down what was translated, for later runs. The program runs on meanwhile.
    void keep_translations();
    // What those do is not heard of (Tracer::look_for_births_and_ends).
    bool has_let_go_of_threads() const { return has_let_go_of_threads_; }
    // The process has ended.
    void process_gone() { threads_.remove_all(); }

    // How often threads asked for code that was not translated.
    std::uint64_t misses() const { return misses_; }
    trace::SampleId sample() const { return threads_.sample(); }
    bool saw_everything() const { return notes_.saw_everything; }
    const std::vector<std::string>& warnings() const { return notes_.warnings; }

  private:
    bool take_new(const ptrace::Event& event);
    void take_known(GuestThread& guest, const ptrace::Event& event);
    void begin_thread(ptrace::Thread& thread);
    void begin_program(GuestThread& guest);
    void on_exec(GuestThread& guest);
    void on_exiting(GuestThread& guest);
    void on_system_call_entry(GuestThread& guest);
    void on_system_call_exit(GuestThread& guest);
    const char* why_to_leave_before(const ptrace::Registers& call) const;
    void have_everybody_leave(const char* why, pid_t stopped);
    void on_request(GuestThread& guest);
    void serve(GuestThread& guest, const ThreadArea& area);
    void on_stop_while_waiting(GuestThread& guest, const ptrace::Registers& registers);
    void on_stop_in_call(GuestThread& guest, const FixedCode& fixed,
                         const ptrace::Registers& registers);
    void on_interrupted(GuestThread& guest);
    bool is_of_burst(GuestThread& guest, const ptrace::Event& event);
    bool is_over(const GuestThread& guest) const;
    static const char* why_over(const GuestThread& guest);
    bool takes_too_long(GuestThread& guest) const;
    void go_on_in_burst(GuestThread& guest);
    void leave_in_handler(GuestThread& guest, Address continuation);
    bool notice_whether_left(GuestThread& guest);
    void end_burst(GuestThread& guest, const ThreadArea& area, const char* reason);
    void finish_burst(GuestThread& guest, const ThreadArea& area, const char* reason);
    void leave_for_good(ptrace::Thread& thread);
    void settle_sleepers();
    ptrace::Thread* someone_to_take_it_out(bool may_sleep);
    void take_out_memory();
    bool wait_and_take(Clock::time_point deadline);

    ptrace::Tracer& tracer_;
    bool in_bursts_;
    BurstExperience experience_;
    SegmentWork work_;
    Random random_;
    ProgramCache cache_;
    GuestThreads threads_;
    RunNotes notes_;
    CacheTraffic traffic_;
    SignalDelivery signals_;
    ProgramTakeover takeover_;
    std::uint64_t misses_ = 0;
    bool has_let_go_of_threads_ = false;
};

}  // namespace shadowprof::emu::translator
