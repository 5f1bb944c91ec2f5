// A guest's code as the interpreter asks for it.
#pragma once

#include "emu/common/guest_code.h"
#include "emu/interpreter/interpreter.h"

namespace shadowprof::emu {

class GuestBlocks : public BlockSource {
  public:
    // Runs that are not recorded show nobody parts of blocks, so none are published.
    enum class Recorded : bool { no, yes };
    explicit GuestBlocks(GuestCode& code, Recorded recorded = Recorded::yes)
        : code_(code), recorded_(recorded) {}

    const trace::Block* block_at(Address at, MemoryView& view) override {
        return code_.block_at(at, view);
    }
    const trace::Block& cut(const trace::Block& block, std::size_t instructions) override {
        return recorded_ == Recorded::yes ? code_.cut(block, instructions) : block;
    }
    bool may_change(Address at) override { return code_.may_change(at); }
    void record(Recorded recorded) { recorded_ = recorded; }

  private:
    GuestCode& code_;
    Recorded recorded_;
};

}  // namespace shadowprof::emu
