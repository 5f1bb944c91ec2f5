// Executable memory for compiled code, and the fixed pieces of code that lead into it and out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emu/common/host_assembler.h"
#include "emu/interpreter/core.h"

namespace shadowprof::emu {

class HostCode {
  public:
    explicit HostCode(std::size_t size);
    ~HostCode();
    HostCode(const HostCode&) = delete;
    HostCode& operator=(const HostCode&) = delete;

    // Runs compiled code on a Core until it leaves. The guest's extended state is taken from, and
    // afterwards in, Core::extended.
    void run(Core& core, const void* code) const;

    // Where the next code goes; what was written is kept by commit().
    HostAssembler begin() { return HostAssembler{next_, memory_ + size_}; }
    void commit(const HostAssembler& assembler) { next_ = assembler.position(); }
    bool has_room(std::size_t bytes) const {
        return static_cast<std::size_t>(memory_ + size_ - next_) >= bytes;
    }
    void forget_everything() { next_ = first_; }

    std::uint32_t offset_of(const void* code) const {
        return static_cast<std::uint32_t>(static_cast<const std::uint8_t*>(code) - memory_);
    }
    std::uint8_t* at(std::uint32_t offset) const { return memory_ + offset; }
    const std::uint8_t* end() const { return memory_ + size_; }

    // Called or jumped to by compiled code.
    const std::uint8_t* leave = nullptr;    // jump: ends run()
    const std::uint8_t* resolve = nullptr;  // calls of the helpers of that name
    const std::uint8_t* finish_write = nullptr;
    const std::uint8_t* peek = nullptr;
    const std::uint8_t* error = nullptr;
    const std::uint8_t* string = nullptr;  // its argument is in esi
    const std::uint8_t* rflags = nullptr;
    const std::uint8_t* set_rflags = nullptr;  // rsi, edx
    const std::uint8_t* enter = nullptr;       // esi
    const std::uint8_t* move_64_bytes = nullptr;
    const std::uint8_t* ordinary = nullptr;  // an OrdinaryFunction in rsi, its argument in rdx

  private:
    void write_stubs();
    const std::uint8_t* write_helper_call(HostAssembler& a, const void* helper);

    std::size_t size_;
    std::uint8_t* memory_;
    std::uint8_t* first_;
    std::uint8_t* next_;
    void (*enter_)(Core*, const void*) = nullptr;
    void (*call_with_host_state_)(Core*, OrdinaryFunction, std::uint64_t) = nullptr;
};

// The components of the extended state that run() switches: those that a program's instructions use
// as data. Protection keys stay the profiler's own. Tiles stay the guest's, because nothing uses
// them.
std::uint64_t switched_components();
// The size of XSAVE's standard format with all components that the host has enabled.
std::size_t extended_area_size();

}  // namespace shadowprof::emu
