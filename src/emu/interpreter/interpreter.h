// The interpreter: executes a guest's code in the profiler's process, on a private view of the
// guest's memory. Nothing ever reaches the guest.
//
// Each block is turned into host code once (block_compiler.h) and found again by address; blocks
// that follow one another directly are joined. Code that may be replaced while the guest runs
// (writable, or of no image) is compared with the view before its first execution in every
// burst, and watched for writes during one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "emu/interpreter/block_compiler.h"
#include "emu/interpreter/compiled_block.h"
#include "emu/interpreter/core.h"
#include "emu/interpreter/extended_helpers.h"
#include "emu/interpreter/guest_state.h"
#include "emu/interpreter/host_code.h"
#include "emu/interpreter/memory_view.h"
#include "trace/block.h"

namespace shadowprof::emu {

// Where the interpreter's blocks come from.
class BlockSource {
  public:
    virtual ~BlockSource() = default;
    // The published block that begins there, with the bytes that the view holds; nullptr if there
    // is none.
    virtual const trace::Block* block_at(Address at, MemoryView& view) = 0;
    // The first n instructions of a block, published as a block of its own with exit `cut`.
    virtual const trace::Block& cut(const trace::Block& block, std::size_t instructions) = 0;
    // Whether other code may come to be there without a change of mappings.
    virtual bool may_change(Address at) = 0;
};

// What a recorded run saw, in order; several calls make up one run.
class BlockSink {
  public:
    virtual ~BlockSink() = default;
    virtual void executed(std::span<const trace::BlockId> blocks,
                          std::span<const std::uint64_t> values) = 0;
    // Control did not leave the last block by its exit. It would have gone on at `continuation`.
    virtual void discontinuity(Address continuation) = 0;
};

enum class StopKind : std::uint8_t {
    instructions,  // as many as were asked for
    system_call,   // reached and counted; rip is after it, rcx and r11 are as before it
    memory_fault,  // at fault_address
    arithmetic,    // division or floating-point exception
    illegal,       // this CPU does not know the instruction
    general_protection,
    trap,          // an instruction no engine goes through
    unsupported,   // an instruction the interpreter does not know
    trap_flag,     // popf set the trap flag
    no_code,       // nothing to decode at rip
    memory_limit,  // the view is full
};

struct Stop {
    StopKind kind{};
    std::uint64_t instructions = 0;  // completed
    Address fault_address;
    std::string reason;  // what a profile counts: "sample size", "unsupported instruction NAME", …
};

class Interpreter : private CoreOwner, private BlockDirectory {
  public:
    // Blocks' slots must not include load latencies, which no interpreter can measure.
    explicit Interpreter(BlockSource& blocks);
    ~Interpreter() override;
    Interpreter(const Interpreter&) = delete;
    Interpreter& operator=(const Interpreter&) = delete;

    // Runs from the state on, for as many instructions as are asked for or until something ends the
    // run. The state is then exactly that before the next instruction. If `sink` is null, the run
    // is not recorded.
    Stop run(GuestState& state, MemoryView& view, std::uint64_t most_instructions, BlockSink* sink);

    // Mappings changed, or the program did: nothing that was known about code holds.
    void forget_code();

  private:
    struct Entry {
        std::uint32_t number = 0;  // in World::blocks
        bool may_change = false;
        bool is_valid = true;  // in this epoch of the view
    };
    struct World {  // of recorded or of unrecorded code
        World(HostCode& code, BlockDirectory& directory, bool recorded)
            : compiler(code, directory, recorded) {}
        void forget() {
            blocks.clear();
            links.clear();
            by_address.clear();
            waiting.clear();
            watched.clear();
            parts.clear();
        }

        BlockCompiler compiler;
        std::vector<CompiledBlock> blocks;
        std::vector<Link> links;
        std::unordered_map<Address, Entry> by_address;
        std::unordered_multimap<Address, std::uint32_t> waiting;  // links, by target
        std::vector<Address> watched;  // valid entries of code that may change
        // For runs that ended within a block: what was published of it, with its number of
        // instructions and its index in `blocks`.
        std::map<std::pair<const trace::Block*, std::size_t>, std::uint32_t> parts;
    };
    class Run;

    MemoryView& view() override { return *view_; }
    const decoder::Instruction* instruction_of(const std::uint8_t* host) override;
    const std::uint8_t* entry_of(Address target) override;
    bool may_change(Address target) override { return source_.may_change(target); }

    struct Place {
        const CompiledBlock* block = nullptr;
        std::size_t instruction = 0;
        bool flags_in_host = false;
    };
    std::optional<Place> place_of(const std::uint8_t* host);
    const CompiledBlock* block_at(Address at);
    void make_room();  // for one more block's code
    const CompiledBlock& compile(const trace::Block& block, std::size_t instructions);
    void watch(Address at, const trace::Block& block);
    void begin_epoch(MemoryView& view);
    void drop_changed_code();
    void invalidate(World& world, Address at);
    JumpEntry& jump_entry(World& world, Address at);
    void clear_tlb();

    BlockSource& source_;
    HostCode code_;
    std::byte* region_;
    Core& core_;
    std::byte* substitutes_;
    World worlds_[2] = {{code_, *this, false}, {code_, *this, true}};
    World* world_ = &worlds_[0];
    MemoryView* view_ = nullptr;
    std::uint64_t epoch_ = 0;
    std::vector<std::uint32_t> block_buffer_;
    std::vector<std::uint64_t> value_buffer_;
};

}  // namespace shadowprof::emu
