// The translator's side of a comparison: a stopped thread of the target executes what it would
// execute next, in its own memory and from the code cache, for as many units as wanted. Whenever
// run() returns the thread is stopped, and native: its registers are the program's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "emu/common/guest_code.h"
#include "emu/translator/shared_memory.h"
#include "emu/translator/translator.h"
#include "ptrace/tracer.h"
#include "recorded_trace.h"
#include "trace/segment.h"

namespace shadowprof::equivalence {

class CachedRun {
  public:
    CachedRun(ptrace::Tracer& tracer, emu::GuestCode& code, std::uint64_t seed)
        : tracer_(tracer), code_(code), random_(seed) {}

    enum class End : std::uint8_t {
        units,        // at the beginning of a block; status flags that will not be read are void
        system_call,  // stopped at its entry
        fault,        // stopped in the delivery of its signal, as under `units`
        unsupported,  // an instruction that is not translated
        no_code,
        gone,
    };

    // Appends to the Trace; without values in the lean version.
    End run(ptrace::Thread& thread, emu::translator::Version version, std::uint64_t units,
            RecordedTrace& trace);

    const std::string& why_not() const { return why_not_; }  // translate: `no_code` from run()
    // A signal that arrived meanwhile: resume the thread with it.
    int undelivered_signal() const { return undelivered_signal_; }
    void forget_signal() { undelivered_signal_ = 0; }

  private:
    bool prepare(ptrace::Thread& thread);
    std::optional<End> enter(ptrace::Thread& thread, const ptrace::Registers& native);
    void start_stream(std::uint64_t units);
    std::optional<End> on_system_call_entry(ptrace::Thread& thread);
    std::optional<End> on_request(ptrace::Thread& thread);
    std::optional<End> on_signal(ptrace::Thread& thread, const ptrace::Event& event);
    void read_stream(std::uint64_t end);
    void read_block(const trace::Block& block, const std::byte*& at);
    void read_part(const emu::translator::Translator::Position& position);
    void follow_something(std::span<const trace::SegmentId> executed);

    ptrace::Tracer& tracer_;
    emu::GuestCode& code_;
    Random random_;
    trace::SegmentTable segments_;
    std::unique_ptr<emu::translator::SharedMemory> memory_;
    std::unique_ptr<emu::translator::Translator> translator_;
    std::string why_not_;
    std::uint32_t area_ = 0;
    std::uint64_t code_epoch_ = 0;
    int undelivered_signal_ = 0;

    // Of the present run.
    RecordedTrace* trace_ = nullptr;
    // In which the end is not where the slot ends.
    bool counts_units() const {
        using emu::translator::Version;
        return version_ == Version::values || version_ == Version::accesses;
    }
    emu::translator::Version version_{};
    std::uint64_t stream_ = 0, units_left_ = 0;
};

}  // namespace shadowprof::equivalence
