// The replicas that are alive. Each is held by a thread of the profiler's own, at the lowest
// priority: it takes the replica when it is born, makes it harmless, lets it run a sample's worth
// of the program in the code cache, and kills it. None of this is on the target's time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "emu/translator/replica_cache.h"
#include "emu/translator/translated_replica.h"
#include "inject/fork_site.h"
#include "inject/replica.h"
#include "sampling/kinds/other_threads.h"
#include "sampling/kinds/page_copier.h"
#include "sampling/kinds/replica_timing.h"
#include "sampling/sampling.h"
#include "sampling/sandbox/file_table_snapshot.h"
#include "sampling/sandbox/journal.h"

namespace shadowprof::sampling {

class Replicas {
  public:
    // There are fewer at once if there cannot be so many threads: see most_at_once().
    Replicas(const SamplerContext& place, inject::ForkSite& fork_site, std::size_t most_at_once);
    ~Replicas();
    Replicas(const Replicas&) = delete;
    Replicas& operator=(const Replicas&) = delete;

    // Why a replica ends if others leave it no processor.
    static constexpr auto* no_processor = "all processors are busy";

    struct Sample {
        trace::TraceStart start;
        emu::translator::TranslatedReplica::Length length;
        Random random;
        // If it is of all threads.
        std::optional<std::vector<OtherThread>> others = {};
        std::shared_ptr<Journal> journal = {};  // if what the original is told is recorded
    };
    // A replica is on its way and will take this sample. `at_birth`: see FileTableWatch.
    void expect(inject::PendingReplica birth, FileTableSnapshot at_birth, Sample sample);
    std::size_t alive() const;
    std::size_t most_at_once() const { return workers_.size(); }
    // Replicas that wait for the original to fetch other memory (ReplicaTiming::settling) begin.
    void settle_no_longer();
    // There is nobody left whom they could disturb: they need not give way to others any more.
    void hurry();
    // Ends those that have lived too long.
    void end_overdue();
    // Ends those that live, or all that there are and will be.
    void end_living(const std::string& reason);
    void end_all(const std::string& reason);

    // What became of replicas since the last time.
    struct Outcome {
        bool was_born = false;      // otherwise `reason` says why not
        bool lacks_memory = false;  // of the program's, which is not forked
        bool starved = false;       // others took all processors
        std::string reason;
        // What its end says about the length of samples.
        enum class End : std::uint8_t { in_time, early, nothing } end = End::nothing;
        std::uint64_t instructions = 0;
        Seconds computed{0};
        std::shared_ptr<const Journal> journal;  // it will not be read any more
    };
    std::vector<Outcome> outcomes();

  private:
    struct Job {
        inject::PendingReplica birth;
        FileTableSnapshot at_birth;
        Sample sample;
    };
    struct Living {
        inject::Replica* replica = nullptr;
        Clock::time_point born;
        Seconds we_had_computed{0};  // then
        std::string ended_by;        // us
        bool starved = false;
        bool settles = false;  // its life has not begun
    };

    void hurry_all();
    void kill_living(const std::string& reason);
    static void begin_life(Living& living);
    static bool is_starving(const Living& living, Seconds age);
    void work();
    Outcome live_or_fail(Job& job);
    Outcome live(Job& job);
    struct Born;
    void live_together(Job& job, const Born& born, Outcome& outcome);
    std::unique_ptr<emu::translator::ThreadRecording> begin_trace(
        trace::TraceStart& start, pid_t replica, const ptrace::Registers& registers,
        const std::shared_ptr<const proc::Maps>& maps, std::uint32_t area, Random& random);
    static void goes_on_at(Address continuation, emu::translator::ReplicaCache::Guest& guest,
                           trace::TraceEnd& end);
    bool only_target_has(Address address, pid_t replica) const;
    // Is on the worker's stack while the replica lives.
    class Registered;

    const SamplerContext& place_;
    inject::ForkSite& fork_site_;
    emu::translator::ReplicaCache cache_;
    PageCopier page_copier_;
    ReplicaTiming timing_;
    pid_t target_;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::condition_variable ended_;  // or hurried, or to settle no longer
    std::deque<Job> waiting_;
    std::list<Living> living_;
    Clock::time_point looked_ = Clock::now();
    std::size_t busy_ = 0;
    std::vector<Outcome> outcomes_;
    std::optional<std::string> ending_;  // all of them
    bool has_seen_anything_ = false, hurried_ = false, closed_ = false;
    std::vector<pid_t> worker_ids_;
    std::vector<std::thread> workers_;
};

}  // namespace shadowprof::sampling
