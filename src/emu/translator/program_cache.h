// The code cache of a whole program: the memory that it shares with us, the translator that fills
// it, and what is known of the program's code and confinement. It lasts from one exec to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/random.h"
#include "emu/common/guest_code.h"
#include "emu/common/life_sign.h"
#include "emu/translator/hot_code.h"
#include "emu/translator/kept/kept_code.h"
#include "emu/translator/shared_memory.h"
#include "emu/translator/translator.h"
#include "inject/fork_conditions.h"
#include "ptrace/tracer.h"
#include "trace/segment.h"

namespace shadowprof::emu::translator {

class ProgramCache {
  public:
    // `nothing_random`: the program was launched without address randomisation, and every run is to
    // be the same.
    ProgramCache(ptrace::Tracer& tracer, GuestCode& code, trace::SegmentTable& segments,
                 KnownCode& known, bool nothing_random, Asking asking);
    ~ProgramCache();
    ProgramCache(const ProgramCache&) = delete;
    ProgramCache& operator=(const ProgramCache&) = delete;

    // Puts an empty cache into the program, by calls of a stopped thread. Nobody hears of threads
    // that end meanwhile. False, and `why`, if that is impossible at this moment. If the cache is
    // for bursts, the thread has been let go on otherwise: what is left to do takes a while.
    bool make(ptrace::Thread& thread, std::string& why);
    // … at this moment.
    Clock::time_point went_on_at() const { return went_on_at_; }
    // It will not be tried again until the next exec.
    void give_up() { is_given_up_ = true; }
    void try_again() { is_given_up_ = false; }
    bool is_given_up() const { return is_given_up_; }
    bool exists() const { return memory_ != nullptr; }

    // The address space that it was in has gone.
    void drop();
    // Writes down what was translated, for later runs. That takes a while.
    void keep() const;
    // Takes the memory out of the program, by calls of a stopped thread, if that is possible at
    // this moment. No thread is inside.
    void take_out(ptrace::Thread& thread);
    bool is_in_program() const { return is_in_program_; }

    SharedMemory& memory() const { return *memory_; }
    Translator& translator() const { return *translator_; }
    ThreadArea read_area(std::uint32_t number) const { return memory_->read_area(number); }

    // Whether the thread is confined (seccomp) just as the first one was when the cache was made.
    bool has_same_confinement(const ptrace::Thread& thread) const;
    // It is under a filter of system calls, which is ours, too.
    bool is_filtered() const { return confinement_ && confinement_->seccomp_mode != 0; }

    // What was translated since the last time is mapped before threads come to it.
    void bring_in_new_code() const;

    // Whether code has come or gone since this was last asked, so that the cache must be emptied.
    bool is_outdated();
    // The same, of a thread that returns from this system call, which is in orig_rax.
    bool is_outdated_after(const ptrace::Registers& call);
    // No thread is inside.
    void empty();

    // See HotCode::look_at().
    bool learn(std::span<const trace::SegmentId> executed, Random& random);

  private:
    void open_exchange();
    bool remove_randomness(ptrace::Thread& thread, std::string& why);

    ptrace::Tracer& tracer_;
    GuestCode& code_;
    trace::SegmentTable& segments_;
    KnownCode& known_;
    bool nothing_random_;
    Asking asking_;
    Clock::time_point went_on_at_;
    std::unique_ptr<SharedMemory> memory_;
    std::unique_ptr<Translator> translator_;
    std::unique_ptr<HotCode> hot_code_;
    std::unique_ptr<KeptCode> kept_;  // or null
    std::optional<inject::Confinement> confinement_;
    std::uint64_t epoch_ = 0;
    std::optional<LifeSign> life_;
    bool is_in_program_ = false;
    bool is_given_up_ = false;
};

}  // namespace shadowprof::emu::translator
