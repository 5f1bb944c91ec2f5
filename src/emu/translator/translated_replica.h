// One sample: a replica runs its program's next instructions from the code cache.
//
// The replica is always inside the cache, except in its system calls, which stop it before they are
// executed and which ReplicaServices serves, and for a moment before the sample begins
// (native_stretch.h). No signal is delivered to it: a fault that is the program's own ends the
// sample.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu/translator/native_rate/landmark.h"
#include "emu/translator/native_rate/native_time.h"
#include "emu/translator/replica_cache.h"
#include "emu/translator/threads/thread_recording.h"
#include "emu/tuning.h"
#include "inject/replica.h"

namespace shadowprof::emu::translator {

// What the kernel is to a program.
class ReplicaServices {
  public:
    virtual ~ReplicaServices() = default;
    // The replica is stopped in a system call; the registers are the guest's, with rip after the
    // call. Sets what the call returns. Returns why the sample ends, if it does.
    virtual std::optional<std::string> serve(ptrace::Registers& registers) = 0;
    // The replica comes to few more calls than it has made: it has warmed up by now.
    virtual bool is_limited() const { return false; }
    // From now on it is this thread that calls: 0 is the one that has forked the replica.
    virtual void serves(std::size_t /*thread*/) {}
    // What it calls itself.
    virtual pid_t own_number(std::size_t /*thread*/) const { return 0; }
    // The thread that is served has started one more, which calls itself by this number.
    virtual void starts(pid_t /*own_number*/) {}
    struct Fault {
        bool is_mended = false;        // the instruction may be tried again
        const char* reason = nullptr;  // why the sample ends, if the fault is not the program's own
    };
    virtual Fault serve_fault(const siginfo_t& info) = 0;
};

class TranslatedReplica {
  public:
    TranslatedReplica(inject::Replica& replica, ReplicaCache& cache, ReplicaCache::Guest& guest,
                      ReplicaServices& services, ThreadRecording& recording, Experience before)
        : replica_(replica),
          cache_(cache),
          guest_(guest),
          services_(services),
          recording_(recording),
          before_(before) {}

    // The replica waits in a loop for another thread to change something, but has no other thread.
    static constexpr const char* waits_in_a_loop = "spinning";
    // What others that run replicas need as well.
    static std::string name_of(const siginfo_t& info);
    static bool ends_in_a_small_loop(std::span<const trace::SegmentId> executed);
    // A call that was served may have changed mappings.
    static void note_mappings(ReplicaCache::Guest& guest, std::uint64_t number,
                              const ptrace::Registers& after);
    struct End {
        std::string reason;
        Address continuation;             // 0: unknown
        std::optional<Address> unmapped;  // it needed memory there, and had none
        std::uint64_t instructions = 0;
        bool is_complete = false;                               // it is as long as was wanted
        std::uint64_t blocks = 0;                               // in the lean version
        std::optional<double> nanoseconds_of_instruction = {};  // as measured natively
        double covers = 0;  // nanoseconds that the program takes for it; 0: not known
    };
    // The sample ends after whichever comes first, or a little later.
    struct Length {
        std::uint64_t instructions = 0;
        double nanoseconds = 0;  // of the original's time (native_time.h); 0: however long it takes
    };
    // Begins with the state that the replica is stopped in. The recording has its stream.
    End run(Length length, Random& random);

  private:
    enum class Next : std::uint8_t { go_on, enter, end };

    Next on_system_call(ptrace::Registers& registers, Random& random);
    Next on_request(const ptrace::Registers& registers, Random& random);
    Next on_guest_call(const ptrace::Registers& registers, Address target, Random& random);
    Next serve_call();
    Next on_signal(const ptrace::Registers& registers, const siginfo_t& info);
    Next measure_rate();
    bool enter();
    void warm_up(ReplicaCache::Turn& turn, Random& random, bool is_limited = false);
    void expect_rate(double nanoseconds_of_instruction);
    void remember(const ThreadRecording::Executed& executed);
    std::uint64_t instructions() const {
        return recording_.work().instructions + recording_.instructions_in_windows();
    }
    double covers();
    bool is_long_enough();
    bool yields_in_vain();
    bool is_caught_spinning(ReplicaCache::Turn& turn, std::span<const trace::SegmentId> executed);
    std::span<const trace::SegmentId> read(ReplicaCache::Turn& turn, Random& random);
    void look_for_hot_code(ReplicaCache::Turn& turn, std::span<const trace::SegmentId> executed,
                           Random& random);
    Next end(std::string reason) {
        end_.reason = std::move(reason);
        return Next::end;
    }

    inject::Replica& replica_;
    ReplicaCache& cache_;
    ReplicaCache::Guest& guest_;
    ReplicaServices& services_;
    ThreadRecording& recording_;
    Experience before_;
    ptrace::Registers native_;
    Length wanted_;
    std::optional<NativeTime> time_;
    std::uint64_t stops_ = 0, calls_ = 0;
    bool is_warm_ = false;  // what is executed is part of the sample
    Work warming_;
    std::vector<trace::SegmentId> warmed_with_;            // the latest of them
    std::optional<Landmark> landmark_;                     // for measuring the rate
    int looks_for_spinning_ = tuning::looks_for_spinning;  // that are left
    ptrace::Registers at_last_yield_;
    int yields_in_vain_ = 0;
    double share_ = 0;  // of the wanted length that is done
    End end_;
};

}  // namespace shadowprof::emu::translator
