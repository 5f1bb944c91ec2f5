// One sample of several threads: those of a replica that were recreated in it run their program's
// next instructions from the code cache, beside each other.
//
// Each is what TranslatedReplica is to the only thread of a replica. Besides:
//
// - They wake each other: futexes are served here (sleepers.h), and who sleeps wakes when the
//   replica's time has come to that moment.
// - The time of the replica is what its threads take together, divided by how many of them ran when
//   it was forked.
// - The sample begins, after the warming up, and ends for all at one moment: for each of them at
//   its next stop after that. So nobody has to be stopped within a unit; and what a thread executes
//   too much at the end is as much as it lacks at the beginning, on average.
// - They may start and end threads, which the kernel hears of only where one starts: one that has
//   ended just stays where it is.
// - When all sleep for ever the sample ends: they wait for a thread that is not in the replica,
//   because it was in the kernel.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emu/translator/native_rate/native_time.h"
#include "emu/translator/replica_cache.h"
#include "emu/translator/threads/thread_recording.h"
#include "emu/translator/together/sleepers.h"
#include "emu/translator/translated_replica.h"
#include "inject/replica.h"

namespace shadowprof::emu::translator {

class ReplicaThreads {
  public:
    struct Thread {
        pid_t tid = 0;  // of the replica's
        std::uint32_t area = 0;
        ThreadRecording* recording = nullptr;  // has its stream
        ptrace::Registers native;  // where it begins; behind its call, if it sleeps in futex(2)
        bool sleeps = false;
    };
    // It starts none where so many live, or so many were seen.
    static constexpr std::size_t most = 32, most_started = 1024;
    // A thread that the program starts gets a recording.
    using Join = std::function<ThreadRecording*(const Thread& started)>;
    ReplicaThreads(inject::Replica& replica, ReplicaCache& cache, ReplicaCache::Guest& guest,
                   ReplicaServices& services, const std::vector<Thread>& threads, Join join,
                   Experience before);

    static constexpr const char* all_wait = "its threads wait for one that is not in the replica";
    // Of each thread, in their order, then of those that were started; and of all.
    struct EndOfThread {
        std::string reason;
        Address continuation;  // 0: unknown
        double covers = 0;     // see TranslatedReplica::End
    };
    struct End {
        std::vector<EndOfThread> threads;
        std::string reason;  // of the thread that ended the sample
        std::uint64_t instructions = 0;
        bool is_complete = false;
    };
    // As TranslatedReplica::run().
    End run(TranslatedReplica::Length length, Random& random);

  private:
    struct Member : Thread {
        explicit Member(const Thread& thread, std::size_t its_number)
            : Thread(thread), number(its_number) {}

        std::size_t number;
        bool is_warm = false, is_done = false;
        bool is_started_here = false, has_ended = false;
        Address number_at;  // in memory: it becomes 0 when the thread ends
        std::optional<NativeTime> time;
        double estimate = 0;        // of its time, at its last look
        double of_instruction = 0;  // while it warmed up
        Work warming;
        std::uint64_t stops = 0, calls = 0;
        std::string reason;
        Address continuation;
        ptrace::Registers at_last_yield;
        int yields_in_vain = 0, looks_for_spinning = tuning::looks_for_spinning;
        std::uint64_t last_fault = 0;  // where
    };
    enum class Phase : std::uint8_t { warming, sample, ending };

    void begin(Member& member);
    void enter(Member& member);
    void on_stop(const inject::Replica::Stop& stop);
    void on_system_call(Member& member, const ptrace::Registers& registers);
    void on_request(Member& member, const ptrace::Registers& registers);
    void on_guest_call(Member& member, const ptrace::Registers& registers, Address target);
    void on_signal(Member& member, const ptrace::Registers& registers, const siginfo_t& info);
    void look(Member& member, ReplicaCache::Turn& turn);
    bool is_caught_spinning(Member& member, ReplicaCache::Turn& turn,
                            std::span<const trace::SegmentId> executed);
    bool is_alone() const { return replica_.running() == 0; }
    void serve(Member& member);
    bool serve_sleep(Member& member);
    bool serve_thread_call(Member& member, std::uint64_t number);
    bool start_thread(Member& member);
    bool end_thread(Member& member);
    std::optional<Address> number_of(const Member& member) const;
    void wake(std::size_t number, std::int64_t result);
    void wake_who_is_due(bool at_once);
    void begin_sample(Member& member);
    void end_sample(std::string reason);
    void finish(Member& member);
    double elapsed() const;
    double share() const;
    std::uint64_t instructions_of(const Member& member) const {
        return member.recording->work().instructions + member.recording->instructions_in_windows();
    }
    double covers(Member& member);
    void look_for_hot_code(Member& member, ReplicaCache::Turn& turn,
                           std::span<const trace::SegmentId> executed);

    inject::Replica& replica_;
    ReplicaCache& cache_;
    ReplicaCache::Guest& guest_;
    ReplicaServices& services_;
    Experience before_;
    Sleepers sleepers_;
    Join join_;
    std::deque<Member> members_;
    double ran_ = 0;  // how many of them, when it was forked
    std::size_t alive_ = 0;
    Phase phase_ = Phase::warming;
    TranslatedReplica::Length wanted_;
    Random* random_ = nullptr;
    bool is_complete_ = false;
    std::string reason_;
};

}  // namespace shadowprof::emu::translator
