// A whole program run from the code cache, with its real system calls and signals.
//
// Each thread is in one of two states. In the *cache* it executes translated code: gs points to its
// area, r15 to where it writes down what it does. Otherwise it is *native*: its registers are the
// guest's own. It is native in every system call, whenever a signal is delivered, and whenever a
// thread or process is born, so that the kernel never sees anything of ours: not in a signal frame,
// not in the registers of a new thread, not in a child, and a profiler that dies leaves behind a
// thread that goes on by itself.
//
// A thread leaves the cache by a system call, its own or one that asks us for something (Request).
// A signal that finds a thread somewhere in the cache waits until it does, which we make it do
// soon: its stream pointer is moved to the alias, and the next unit notices. A fault is delivered
// at once: it happens at an instruction of the guest, for which the code's marks say where the
// guest's registers are.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "emu/guest_code.h"
#include "emu/translator/shared_memory.h"
#include "emu/translator/translator.h"
#include "ptrace/tracer.h"
#include "trace/segment.h"
#include "trace/trace.h"

namespace shadowprof::emu::translator {

struct RunOptions {
    bool captures = false;      // anything: there is a version for values
    double value_fraction = 0;  // of units, executed in that version
    std::uint64_t seed = 0;
    bool nothing_random = false;  // it was launched without address randomisation
};

class TranslatedProcess {
  public:
    TranslatedProcess(ptrace::Tracer& tracer, GuestCode& code, trace::SegmentTable& segments,
                      trace::TraceSink& sink, RunOptions options);
    ~TranslatedProcess();

    // False: not of a thread of ours.
    bool take(const ptrace::Event& event);
    // Every thread goes on natively.
    void let_go(const std::string& reason);
    // The process has ended.
    void process_gone();

    bool saw_everything() const { return saw_everything_; }
    const std::vector<std::string>& warnings() const { return warnings_; }
    Translator::Statistics statistics() const;

  private:
    enum class State : std::uint8_t { native, in_cache };

    struct Guest {
        ptrace::Thread* thread = nullptr;
        State state = State::native;
        bool untranslated = false;  // for the rest of its life
        bool in_system_call = false;
        bool after_exec = false;
        bool asks = false;  // on its way through the system call of a request
        bool refuses_rseq = false;
        std::optional<std::uint32_t> area;
        std::uint64_t stream = 0;      // where it will write next, while it is native
        std::uint64_t read_up_to = 0;  // of what it has written
        Version version = Version::lean;
        std::uint64_t lean_left = 0;  // segments to be executed before it is time for values
        trace::TraceId trace{};
        trace::TraceId burst{};
        trace::SampleId sample{};
        Address expected;  // behind the system call
        // A signal is being delivered to a handler; it would have gone on here.
        std::optional<Address> entering_handler;
        std::deque<siginfo_t> held;  // signals, until the thread leaves the cache
        std::optional<siginfo_t> redelivered;
        std::optional<ptrace::Registers> parked;  // native, while the cache is being emptied
    };

    void begin_thread(ptrace::Thread& thread, bool after_exec);
    bool begin_process(Guest& guest);
    void on_exec(Guest& guest);
    void on_system_call_entry(Guest& guest);
    void on_system_call_exit(Guest& guest);
    void on_request(Guest& guest, ptrace::Registers registers);
    void on_signal(Guest& guest, const ptrace::Event& event);
    void on_fault(Guest& guest, ptrace::Registers registers, const Translator::Position& position,
                  const ptrace::Event& event);
    void on_interrupted(Guest& guest);
    void end_thread(Guest& guest, std::string reason, bool exited);

    void enter(Guest& guest, const ptrace::Registers& native);
    void enter_at(Guest& guest, ptrace::Registers registers, Address place);
    void run_natively(Guest& guest, const ptrace::Registers& native, const std::string& why);
    // Of a thread in the cache: what it would have here if it were native.
    ptrace::Registers native_registers(const Guest& guest, ptrace::Registers in_cache) const;
    void leave_cache(Guest& guest, const ptrace::Registers& native, std::uint64_t stream);
    std::uint64_t stream_of(const Guest& guest, const ptrace::Registers& in_cache) const;
    bool admit(Guest& guest);
    void on_exiting(Guest& guest);
    void on_stepped(Guest& guest);
    void deliver(Guest& guest, int signal, Address continuation);
    void call_out(Guest& guest, ptrace::Registers registers);

    void check_mappings(const ptrace::Registers& call);
    void check_epoch();
    void begin_emptying();
    void empty_cache();
    bool nobody_is_inside() const;

    void read_stream(Guest& guest);
    void read_lean(Guest& guest);
    void read_values(Guest& guest);
    void look_for_hot_code(std::span<const trace::SegmentId> executed);
    bool begins_unit(trace::SegmentId before, trace::SegmentId segment) const;
    void read_block_values(const trace::Block& block, const std::byte*& at);
    void restart_stream(Guest& guest);
    void choose_version(Guest& guest);
    std::uint64_t draw_lean_run();
    void begin_burst(Guest& guest);
    void end_burst(Guest& guest);
    void cut(Guest& guest, const Unit& unit, std::size_t block, std::size_t instruction);
    trace::SegmentChunk& chunk_of(const Guest& guest) { return chunks_[guest.thread->tid()]; }
    void flush(Guest& guest);
    void discontinuity(Guest& guest, Address continuation);

    ptrace::Tracer& tracer_;
    GuestCode& code_;
    trace::SegmentTable& segments_;
    trace::TraceSink& sink_;
    RunOptions options_;
    Random random_;
    std::unique_ptr<SharedMemory> memory_;
    std::unique_ptr<Translator> translator_;
    std::map<pid_t, Guest> guests_;
    std::map<pid_t, trace::SegmentChunk> chunks_;
    trace::TraceChunk burst_chunk_;
    std::unordered_map<trace::BlockId, unsigned> hits_;  // of looks for hot code, by first block
    std::uint64_t epoch_ = 0;
    bool emptying_ = false;
    std::uint32_t traces_ = 0, samples_ = 1;
    bool saw_everything_ = true;
    bool cannot_translate_ = false;
    std::optional<std::string> letting_go_;
    std::vector<std::string> warnings_;
};

}  // namespace shadowprof::emu::translator
