// emu: engines that execute guest code and yield Traces. They know blocks and processes, and
// nothing of hotlists or of when to sample.
//
// This file: a guest's code as blocks. Turns an address of one address space into a published
// Block: reads the bytes, cuts the block, finds its Location, and notices when code changed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ptrace/maps.h"
#include "ptrace/memory.h"
#include "trace/block.h"
#include "trace/location.h"

namespace shadowprof::emu {

// One thread at a time.
class GuestCode : public trace::CodeSource {
  public:
    GuestCode(pid_t pid, trace::BlockTable& blocks, trace::ModuleTable& modules,
              trace::CapturePlan plan);

    // The block that begins here; nullptr if its bytes cannot be read or decoded. Blocks in
    // writable or anonymous memory are compared with memory each time.
    const trace::Block* block_at(Address at);
    // The first n instructions of a block, published as a block of its own with exit `cut`.
    const trace::Block& cut(const trace::Block& block, std::size_t instructions);

    trace::Location locate(Address at);

    // After exec: nothing known holds. After mmap, munmap, mprotect, dlopen: look at the maps again
    // and forget blocks of mappings that changed.
    void forget_everything();
    void mappings_changed();

    std::size_t read_code(Address at, std::span<std::byte> into) override;
    const ptrace::Maps& maps();
    const ptrace::Memory& memory() const { return memory_; }

  private:
    struct Entry {
        const trace::Block* block = nullptr;
        bool may_change = false;
    };
    trace::ModuleId module_id(const ptrace::Module& module);
    bool may_change(Address at);

    pid_t pid_;
    ptrace::Memory memory_;
    trace::BlockTable& blocks_;
    trace::ModuleTable& modules_;
    trace::CapturePlan plan_;
    std::optional<ptrace::Maps> maps_;
    std::unordered_map<Address, Entry> by_address_;
    std::unordered_map<std::uint64_t, const trace::Block*> cuts_;  // block id and length
};

}  // namespace shadowprof::emu
