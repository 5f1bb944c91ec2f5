// The threads of a program that runs from the code cache, and the Trace of each.
#pragma once

#include <csignal>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "emu/translator/program_cache.h"
#include "emu/translator/thread_recording.h"
#include "ptrace/tracer.h"
#include "trace/trace.h"

namespace shadowprof::emu::translator {

// What is known of a thread until it becomes another program (exec).
struct ThreadSituation {
    enum class State : std::uint8_t { native, in_cache };

    State state = State::native;
    bool in_system_call = false;
    bool arriving = false;  // native until it can be taken into the cache, for the first time
    bool called = false;    // … and it has been interrupted for that
    std::optional<std::uint32_t> area;
    // It is in a system call that it makes from the cache, and will ask for something behind it.
    bool asks_behind_call = false;
    Address expected;  // where it goes on after the system call
    // A signal is being delivered to a handler; without it the thread would have gone on here.
    std::optional<Address> entering_handler;
    std::deque<siginfo_t> held;  // signals, until the thread leaves the cache
    std::optional<siginfo_t> redelivered;
    std::optional<ptrace::Registers> parked;  // native, while the cache is being emptied

    bool in_cache() const { return state == State::in_cache; }
};

struct GuestThread : ThreadSituation {
    ptrace::Thread* thread = nullptr;
    bool untranslated = false;  // for the rest of its life
    trace::TraceId trace{};
    std::optional<ThreadRecording> recording;

    void has_become_another_program() { static_cast<ThreadSituation&>(*this) = {}; }
};

class GuestThreads {
  public:
    GuestThreads(ptrace::Tracer& tracer, ProgramCache& cache, ThreadRecording::Place place)
        : tracer_(tracer), cache_(cache), place_(place), sample_(place.numbers.next_sample()) {}

    GuestThread* find(pid_t tid);
    GuestThread& add(ptrace::Thread& thread, bool from_its_start);
    // Gives the thread an area and a stream, if it has none yet. False: there are too many threads.
    bool admit(GuestThread& guest);
    // Reads what the thread has written into its stream since the last time.
    void read_stream(GuestThread& guest);
    // Ends the thread's Trace: it has exited, or it goes on untranslated.
    void end(GuestThread& guest, std::string reason, bool exited);

    // The thread, or each of these threads, has exited.
    void remove(pid_t tid);
    void remove_all_but(const GuestThread& survivor);
    void remove_all();
    // While a thread of the program makes calls for us, no event says that another one ends.
    void ends_may_be_missed() { ends_may_be_missed_ = true; }
    void remove_missed();
    void remove_ended();

    // Its registers are in its area, and it executes no unit.
    bool waits_for_answer(const GuestThread& guest) const;
    bool any_in_cache() const;
    bool any_in_units() const;
    // Whether threads are in the cache that can be made to leave it now.
    bool any_can_leave() const;
    // Threads that execute units are made to stop, and those in a system call to ask behind it.
    void call_those_in_units();
    // The same, and threads in calls are interrupted too, unless a part may have been done.
    void call_all();

    auto begin() { return guests_.begin(); }
    auto end() { return guests_.end(); }
    trace::SampleId sample() const { return sample_; }

  private:
    bool makes_ask_behind_call(GuestThread& guest) const;
    // It will ask behind its call, of which a part may have been done.
    bool may_not_be_interrupted(const GuestThread& guest) const;

    ptrace::Tracer& tracer_;
    ProgramCache& cache_;
    ThreadRecording::Place place_;
    trace::SampleId sample_;  // the whole run is one sample
    std::map<pid_t, GuestThread> guests_;
    bool ends_may_be_missed_ = false;
};

}  // namespace shadowprof::emu::translator
