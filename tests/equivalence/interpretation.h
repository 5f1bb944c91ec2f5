// The interpreter's side of a comparison: executes what a stopped thread would execute next, as
// often as wanted and always from the same memory, even when the thread has long gone on.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "emu/common/guest_code.h"
#include "emu/interpreter/guest_blocks.h"
#include "emu/interpreter/guest_pages.h"
#include "emu/interpreter/interpreter.h"
#include "emu/interpreter/memory_view.h"
#include "end_state.h"
#include "recorded_trace.h"

namespace shadowprof::equivalence {

class Interpretation {
  public:
    struct Run {
        RecordedTrace trace;
        emu::GuestState state;
        emu::Stop stop;
    };

    Interpretation(emu::GuestCode& code, const trace::ModuleTable& modules, bool shares_our_clocks);
    ~Interpretation();

    // The thread is stopped in that state: all runs until the next call begin there.
    void begin(const EndState& start);
    Run run(std::uint64_t instructions, bool recorded);
    // From another state, in the memory as the last run left it.
    Run go_on(const emu::GuestState& from, std::uint64_t instructions);

    // The number of instructions before the first whose result cannot be equal, and why it cannot.
    std::uint64_t comparable(const std::vector<ExecutedInstruction>& executed,
                             std::optional<std::string>& why) const;

    emu::MemoryView& view() { return view_; }

  private:
    // Pages as they were when a run first used them.
    class FirstPages : public emu::PageSource {
      public:
        explicit FirstPages(emu::PageSource& source) : source_(source) {}
        void forget() { pages_.clear(); }
        Fetched fetch(Address page, std::byte* into, std::size_t begin, std::size_t end) override;

      private:
        struct Kept {
            Fetched fetched;
            std::array<std::byte, page_size> bytes;
        };
        emu::PageSource& source_;
        std::unordered_map<Address, std::unique_ptr<Kept>> pages_;
    };

    emu::GuestCode& code_;
    const trace::ModuleTable& modules_;
    emu::GuestBlocks blocks_;
    emu::GuestPages guest_pages_;
    FirstPages pages_{guest_pages_};
    emu::MemoryView view_;
    emu::Interpreter interpreter_;
    std::optional<EndState> start_;
    std::uint64_t code_epoch_ = 0;
};

}  // namespace shadowprof::equivalence
