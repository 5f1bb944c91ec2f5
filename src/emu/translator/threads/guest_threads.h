// The threads of a program that runs from the code cache, and the Trace of each.
#pragma once

#include <bitset>
#include <csignal>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emu/translator/in_place/burst.h"
#include "emu/translator/program_cache.h"
#include "emu/translator/threads/overload.h"
#include "emu/translator/threads/thread_recording.h"
#include "ptrace/tracer.h"
#include "trace/trace.h"

namespace shadowprof::emu::translator {

inline constexpr std::size_t most_signals = 65;

// What is known of a thread until it becomes another program (exec).
struct ThreadSituation {
    // `leaving`: its burst is over, and it is on the way to its own code, or there since long.
    enum class State : std::uint8_t { native, in_cache, leaving };

    State state = State::native;
    bool in_system_call = false;
    bool arriving = false;  // native until it can be taken into the cache, for the first time
    bool called = false;    // … and it has been interrupted for that
    std::optional<std::uint32_t> area;
    // It is in a system call that it makes from the cache, and will ask for something behind it.
    bool asks_behind_call = false;
    Address expected;  // where it goes on after the system call
    // A signal is being delivered to a handler; without it the thread would have gone on here.
    struct Interrupted {
        Address continuation;
        std::uint64_t stack = 0;
    };
    std::optional<Interrupted> entering_handler;
    std::optional<std::uint64_t> refused_length;  // of rseq(2), which is made to fail
    std::deque<siginfo_t> held;                   // signals, until the thread leaves the cache
    std::optional<siginfo_t> redelivered;
    // Signals that we have sent it for such as were held, and that have not arrived.
    std::bitset<most_signals> sent_again;
    // Its own, while signals are kept from it until it has left the cache.
    std::optional<std::uint64_t> signal_mask;
    SignalLoad signal_load;
    std::optional<ptrace::Registers> parked;  // native, while the cache is being emptied

    std::optional<Burst> burst;
    bool has_window_over = false;  // it has come to the end of its burst's last part
    bool is_complete = false;      // … and has left by itself, or its time was over

    // Signals that were held are on their way to it.
    bool awaits_signals() const { return !held.empty() || redelivered || sent_again.any(); }
    bool in_cache() const { return state == State::in_cache; }
    bool is_leaving() const { return state == State::leaving; }
};

struct GuestThread : ThreadSituation {
    ptrace::Thread* thread = nullptr;
    bool untranslated = false;  // for the rest of its life, or until its next burst
    bool has_open_trace = false;
    trace::SampleId sample{};
    trace::TraceId trace{};
    std::optional<ThreadRecording> recording;
    // How long it had not slept so far when its latest burst began.
    struct Awake {
        Clock::time_point at;
        std::uint64_t nanoseconds;
    };
    std::optional<Awake> awake;
    Clock::time_point burst_began;

    void has_become_another_program() { static_cast<ThreadSituation&>(*this) = {}; }
};

class GuestThreads {
  public:
    // Either the whole run is one sample, or each burst is.
    GuestThreads(ptrace::Tracer& tracer, ProgramCache& cache, ThreadRecording::Place place,
                 bool in_bursts);

    GuestThread* find(pid_t tid);
    const GuestThread* find(pid_t tid) const;
    GuestThread& add(ptrace::Thread& thread, bool from_its_start);
    // A burst of a stopped thread, whose Trace has begun.
    GuestThread& add_burst(ptrace::Thread& thread, const trace::TraceStart& start,
                           const Burst& burst);
    // Gives the thread an area and a stream, if it has none yet. False: there are too many threads.
    bool admit(GuestThread& guest);
    // Of a burst.
    void note_beginning(GuestThread& guest) const;
    void note_displacement(GuestThread& guest) const;
    // Of bursts. Another thread of the program may put a filter on all of them at any time
    // (SECCOMP_FILTER_FLAG_TSYNC). A single one cannot have it done without our hearing of it.
    void tell_whether_to_call();
    // Threads that cannot ring are looked at often, as long as they may ask. One that sleeps for
    // long in a call of the program's leaves by itself when that is over.
    void look_at_silent();
    // Reads what the thread has written into its stream since the last time.
    void read_stream(GuestThread& guest);
    // Of bursts: what they have executed says which code is hot. That waits until there is time.
    void learn();
    // Ends the thread's Trace: it has exited, or it goes on untranslated, at `continuation` unless
    // it is stopped where it goes on.
    void end(GuestThread& guest, std::string reason, bool exited,
             std::optional<Address> continuation = {});
    // Bursts that are over, since the last time.
    std::vector<BurstOutcome> outcomes() { return std::exchange(outcomes_, {}); }

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
    // … and has left by itself.
    bool has_left(const GuestThread& guest) const;
    bool any_with_open_trace() const;
    // Any in the cache, or leaving it: what those do is not known for certain.
    bool may_any_be_inside() const;
    bool any_awaits_signals() const;
    bool any_in_units() const;
    // Whether threads are in the cache that can be made to leave it now.
    bool any_can_leave() const;
    // Threads that execute units are made to stop, and those in a system call to ask behind it.
    void call_those_in_units();
    // The same, and threads in calls are interrupted too, unless a part may have been done.
    void call_all();

    auto begin() { return guests_.begin(); }
    auto end() { return guests_.end(); }
    // Of the whole run.
    trace::SampleId sample() const { return *sample_; }
    unsigned threads_ = 0;  // that there have been

  private:
    void expect_in_windows();
    bool is_any_open_of(trace::SampleId sample) const;
    bool makes_ask_behind_call(GuestThread& guest) const;
    // It will ask behind its call, of which a part may have been done.
    bool may_not_be_interrupted(const GuestThread& guest) const;

    ptrace::Tracer& tracer_;
    ProgramCache& cache_;
    ThreadRecording::Place place_;
    std::optional<trace::SampleId> sample_;  // of the whole run
    std::map<pid_t, GuestThread> guests_;
    std::vector<BurstOutcome> outcomes_;
    // What bursts have executed, with a discontinuity behind each part that was read at once.
    std::vector<trace::SegmentId> to_learn_;
    std::vector<bool> is_expected_in_windows_;  // by segment
    bool ends_may_be_missed_ = false;
};

}  // namespace shadowprof::emu::translator
