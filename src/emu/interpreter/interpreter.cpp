#include "emu/interpreter/interpreter.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <new>

#include "base/error.h"
#include "decoder/decoder.h"
#include "emu/interpreter/core_helpers.h"
#include "emu/interpreter/host_faults.h"
#include "emu/interpreter/vsyscall.h"

namespace shadowprof::emu {

namespace {

constexpr std::size_t code_size = std::size_t{64} << 20;
constexpr std::size_t stack_size = std::size_t{256} << 10;
constexpr std::size_t block_buffer_size = 1u << 13;
constexpr std::size_t value_buffer_size = 1u << 16;
// No block has more slots than this: what remains of the buffer when it counts as full.
constexpr std::size_t most_slots = trace::most_instructions_in_block * 32;

constexpr std::size_t region_size = page_size + stack_size + round_up_to_page(sizeof(Core));

std::byte* map_memory(std::size_t size) {
    auto* memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return static_cast<std::byte*>(memory);
}

// A guard page, the stack, the Core.
std::byte* map_region() {
    auto* region = map_memory(region_size);
    ::mprotect(region, page_size, PROT_NONE);
    return region;
}

std::byte* map_substitutes() {
    auto* pages = map_memory(substitute_pages * page_size);
    ::mprotect(pages, 2 * page_size, PROT_NONE);
    ::mprotect(pages + 4 * page_size, page_size, PROT_NONE);
    return pages;
}

std::string name_of(const decoder::Instruction& instruction) {
    return std::string(decoder::mnemonic_name(instruction));
}

}  // namespace

Interpreter::Interpreter(BlockSource& blocks)
    : source_(blocks),
      code_(code_size),
      region_(map_region()),
      core_(*new (region_ + page_size + stack_size) Core{}),
      substitutes_(map_substitutes()),
      block_buffer_(block_buffer_size),
      value_buffer_(value_buffer_size) {
    catch_host_faults();
    core_.fetch_page = fetch_page;
    core_.owner = this;
    core_.substitutes = substitutes_;
    core_.extended_mask = switched_components();
    core_.code_begin = code_.at(0);
    core_.code_end = code_.end();
    core_.leave = code_.leave;
    core_.values_limit = value_buffer_.data() + value_buffer_size - most_slots;
    clear_tlb();
    forget_code();
}

Interpreter::~Interpreter() {
    ::munmap(region_, region_size);
    ::munmap(substitutes_, substitute_pages * page_size);
}

void Interpreter::forget_code() {
    for (unsigned w = 0; w < 2; ++w) {
        worlds_[w].forget();
        for (unsigned n = 0; n < jump_table_size; ++n) core_.jumps[w][n] = empty_jump_entry(n);
    }
    code_.forget_everything();
}

void Interpreter::make_room() {
    if (code_.has_room(BlockCompiler::most_bytes)) return;
    restore_x87_pointers(&core_, 0);
    forget_code();
}

void Interpreter::clear_tlb() {
    for (unsigned n = 0; n < tlb_size; ++n)
        core_.read_tlb[n] = core_.write_tlb[n] = empty_tlb_entry(n);
}

// ---- Compiled blocks --------------------------------------------------------------------------

JumpEntry& Interpreter::jump_entry(World& world, Address at) {
    return core_.jumps[&world - worlds_][at.value % jump_table_size];
}

const std::uint8_t* Interpreter::entry_of(Address target) {
    const auto known = world_->by_address.find(target);
    if (known == world_->by_address.end() || known->second.may_change) return nullptr;
    return world_->blocks[known->second.number].entry;
}

const CompiledBlock* Interpreter::block_at(Address at) {
    auto known = world_->by_address.find(at);
    if (known != world_->by_address.end()) {
        auto& entry = known->second;
        const auto& compiled = world_->blocks[entry.number];
        if (entry.is_valid) return &compiled;
        if (trace::still_holds(*compiled.block, *view_) == true) {
            entry.is_valid = true;
            watch(at, *compiled.block);
            return &compiled;
        }
    }
    const auto* block = source_.block_at(at, *view_);
    if (!block) return nullptr;
    const bool changes = source_.may_change(at) || source_.may_change(block->last().address);
    make_room();
    const auto& compiled = compile(*block, block->instructions.size());
    world_->by_address[at] = {static_cast<std::uint32_t>(world_->blocks.size() - 1), changes, true};
    if (changes) {
        watch(at, *block);
    } else {
        const auto [first, last] = world_->waiting.equal_range(at);
        for (auto link = first; link != last; ++link)
            HostAssembler::join(code_.at(world_->links[link->second].displacement), compiled.entry);
        world_->waiting.erase(first, last);
    }
    return &compiled;
}

const CompiledBlock& Interpreter::compile(const trace::Block& block, std::size_t instructions) {
    const auto first_link = world_->links.size();
    SHADOWPROF_ASSERT(block.slots.size() <= most_slots, "too many slots");
    world_->blocks.push_back(world_->compiler.compile(
        block, instructions, static_cast<std::uint32_t>(world_->blocks.size()), world_->links));
    for (auto n = first_link; n < world_->links.size(); ++n)
        if (!entry_of(world_->links[n].target))
            world_->waiting.emplace(world_->links[n].target, static_cast<std::uint32_t>(n));
    return world_->blocks.back();
}

std::optional<Interpreter::Place> Interpreter::place_of(const std::uint8_t* host) {
    const auto offset = code_.offset_of(host);
    const auto& blocks = world_->blocks;
    auto block = std::upper_bound(
        blocks.begin(), blocks.end(), offset,
        [](std::uint32_t wanted, const CompiledBlock& b) { return wanted < b.begin; });
    if (block == blocks.begin() || offset >= (--block)->end) return {};
    auto mark = std::upper_bound(
        block->marks.begin(), block->marks.end(), offset,
        [](std::uint32_t wanted, const Mark& m) { return wanted < m.host_offset; });
    if (mark == block->marks.begin()) return {};
    --mark;
    return Place{&*block, mark->instruction, mark->flags_in_host};
}

const decoder::Instruction* Interpreter::instruction_of(const std::uint8_t* host) {
    const auto place = place_of(host);
    return place ? &place->block->block->instructions[place->instruction] : nullptr;
}

// ---- Code that changes ------------------------------------------------------------------------

void Interpreter::watch(Address at, const trace::Block& block) {
    world_->watched.push_back(at);
    view_->mark_code({block.start, block.end()});
    const auto end = round_up_to_page(block.end().value);
    for (auto piece = block.start.value & page_mask; piece < end; piece += piece_size) {
        const auto index = static_cast<unsigned>(piece / piece_size % tlb_size);
        core_.write_tlb[index] = empty_tlb_entry(index);
    }
    core_.table = view_->table();
}

void Interpreter::invalidate(World& world, Address at) {
    const auto known = world.by_address.find(at);
    if (known != world.by_address.end()) known->second.is_valid = false;
    auto& jump = jump_entry(world, at);
    if (jump.guest == at.value) jump = empty_jump_entry(at.value % jump_table_size);
}

// The view holds other pages than before, so code that was read from memory that may change may
// differ.
void Interpreter::begin_epoch(MemoryView& view) {
    view_ = &view;
    core_.table = view.table();
    if (view.epoch() == epoch_) return;
    epoch_ = view.epoch();
    clear_tlb();
    for (auto& world : worlds_) {
        for (const auto at : world.watched) invalidate(world, at);
        world.watched.clear();
    }
}

void Interpreter::drop_changed_code() {
    core_.code_changed = 0;
    const auto pages = view_->take_changed_code();
    for (auto& world : worlds_) {
        std::erase_if(world.watched, [&](Address at) {
            const auto& block = *world.blocks[world.by_address.at(at).number].block;
            const bool changed = std::any_of(pages.begin(), pages.end(), [&](Address page) {
                return block.start < page + page_size && page < block.end();
            });
            if (changed) invalidate(world, at);
            return changed;
        });
    }
}

// ---- Running ----------------------------------------------------------------------------------

// One call of run(): moves the state into the Core and out again, hands out the budget in slices
// that the block buffer has room for, and turns exits of compiled code into what happens next.
class Interpreter::Run {
  public:
    Run(Interpreter& owner, GuestState& state, std::uint64_t most_instructions, BlockSink* sink)
        : owner_(owner), core_(owner.core_), state_(state), sink_(sink), left_(most_instructions) {
        most_ = most_instructions;
        std::copy(state.general.begin(), state.general.end(), core_.general);
        set_status_flags(core_, state.rflags);
        core_.backward = state.rflags >> 10 & 1;
        core_.other_flags = static_cast<std::uint32_t>(state.rflags & ~std::uint64_t{0xcd7});
        core_.fs_base = state.fs_base;
        core_.gs_base = state.gs_base;
        core_.extended = state.extended.data();
        core_.budget = 0;
        core_.code_changed = 0;
        core_.pending_count = 0;
        rip_ = state.rip;
        empty_buffers();
    }

    Stop until_stopped() {
        Stop stop;
        while (!next_step(stop)) {
        }
        flush();
        restore_x87_pointers(&core_, 0);
        std::copy(std::begin(core_.general), std::end(core_.general), state_.general.begin());
        state_.rflags = rflags_of(core_);
        state_.fs_base = core_.fs_base;
        state_.gs_base = core_.gs_base;
        state_.rip = rip_;
        stop.instructions = most_ - left_ - static_cast<std::uint64_t>(core_.budget);
        return stop;
    }

  private:
    // True if the run is over.
    bool next_step(Stop& stop) {
        if (core_.code_changed || owner_.view_->code_changed()) owner_.drop_changed_code();
        if (left_ == 0 && core_.budget == 0)
            return end(stop, StopKind::instructions, "sample size");
        if (is_vsyscall(rip_)) return call_vsyscall(stop);
        const auto* compiled = owner_.block_at(rip_);
        if (!compiled) return end(stop, StopKind::no_code, "no decodable instruction");
        if (core_.budget < compiled->instructions && left_ > 0) {
            flush();
            refill();
        }
        if (core_.budget < compiled->instructions)
            compiled = &part_of(*compiled->block, static_cast<std::size_t>(core_.budget));
        core_.table = owner_.view_->table();
        {
            const FaultScope scope(core_);
            owner_.code_.run(core_, compiled->entry);
        }
        return after_exit(stop);
    }

    const CompiledBlock& part_of(const trace::Block& block, std::size_t instructions) {
        auto& world = *owner_.world_;
        const auto& published = sink_ ? owner_.source_.cut(block, instructions) : block;
        const auto known = world.parts.find({&published, instructions});
        if (known != world.parts.end()) return world.blocks[known->second];
        owner_.make_room();
        world.parts[{&published, instructions}] = static_cast<std::uint32_t>(world.blocks.size());
        return owner_.compile(published, instructions);
    }

    bool after_exit(Stop& stop) {
        auto& world = *owner_.world_;
        const auto detail = core_.exit_detail;
        switch (core_.exit_kind) {
            case ExitKind::link:
                rip_ = world.links[detail].target;
                return false;
            case ExitKind::lookup:
                rip_ = {core_.rip};
                enter_jump();
                return false;
            case ExitKind::budget:
                rip_ = world.blocks[detail].block->start;
                return false;
            case ExitKind::values_full:
                rip_ = world.blocks[detail].block->start;
                flush();
                return false;
            case ExitKind::system_call:
                rip_ = {core_.rip};
                return end(stop, StopKind::system_call, "system call");
            case ExitKind::code_changed:
                leave_block(world.blocks[core_.exit_block], detail);
                rip_ = {core_.rip};
                return false;
            case ExitKind::flag_trap:
                leave_block(world.blocks[core_.exit_block], detail);
                rip_ = {core_.rip};
                return end(stop, StopKind::trap_flag, "trap flag");
            case ExitKind::trap: {
                const auto& i = stop_before(world.blocks[core_.exit_block], detail);
                return end(stop, StopKind::trap, "trap " + name_of(i));
            }
            case ExitKind::unsupported: {
                const auto& i = stop_before(world.blocks[core_.exit_block], detail);
                return end(stop, StopKind::unsupported, "unsupported instruction " + name_of(i));
            }
            case ExitKind::protection:
                stop_before(world.blocks[core_.exit_block], detail);
                return end(stop, StopKind::general_protection, "general protection fault");
            case ExitKind::memory_fault:
                stop_before(world.blocks[core_.exit_block], detail);
                stop.fault_address = {core_.fault_address};
                return end_by_memory_fault(stop);
            case ExitKind::fault:
                return end_by_host_fault(stop);
        }
        return true;
    }

    bool end(Stop& stop, StopKind kind, std::string reason) {
        stop.kind = kind;
        stop.reason = std::move(reason);
        return true;
    }

    bool end_by_memory_fault(Stop& stop) {
        if (owner_.view_->exhausted()) return end(stop, StopKind::memory_limit, "memory limit");
        return end(stop, StopKind::memory_fault, "memory fault");
    }

    bool end_by_host_fault(Stop& stop) {
        const auto* host = reinterpret_cast<const std::uint8_t*>(core_.host_address);
        const auto place = owner_.place_of(host);
        SHADOWPROF_ASSERT(place, "a fault in code that belongs to no instruction");
        // The instruction had written this before it faulted.
        if (core_.pending_count != 0) shadowprof_finish_write(&core_);
        if (place->flags_in_host) set_status_flags(core_, core_.fault_flags);
        stop_before(*place->block, place->instruction);
        switch (core_.signal) {
            case SIGFPE:
                return end(stop, StopKind::arithmetic, "arithmetic exception");
            case SIGILL:
                return end(stop, StopKind::illegal, "illegal instruction");
            case SIGTRAP:
                return end(stop, StopKind::trap, "trap");
            default:
                break;
        }
        const auto at = reinterpret_cast<const std::byte*>(core_.fault_address);
        if (at < owner_.substitutes_ || at >= owner_.substitutes_ + substitute_pages * page_size)
            return end(stop, StopKind::general_protection, "general protection fault");
        stop.fault_address = {core_.slow_address +
                              static_cast<std::uint64_t>(at - core_.resolved_to)};
        return end_by_memory_fault(stop);
    }

    // The block's first `done` instructions were executed, and no others.
    void leave_block(const CompiledBlock& compiled, std::size_t done) {
        core_.budget += static_cast<std::int64_t>(compiled.instructions - done);
        if (!sink_) return;
        const auto& block = *compiled.block;
        core_.values +=
            std::count_if(block.slots.begin(), block.slots.end(),
                          [&](const trace::Slot& slot) { return slot.instruction < done; });
        if (done == 0)
            --core_.blocks;
        else if (done < block.instructions.size())
            core_.blocks[-1] = static_cast<std::uint32_t>(owner_.source_.cut(block, done).id);
    }

    const decoder::Instruction& stop_before(const CompiledBlock& compiled, std::size_t index) {
        leave_block(compiled, index);
        const auto& instruction = compiled.block->instructions[index];
        rip_ = instruction.address;
        return instruction;
    }

    void enter_jump() {
        if (is_vsyscall(rip_)) return;
        if (core_.code_changed || owner_.view_->code_changed()) owner_.drop_changed_code();
        if (const auto* compiled = owner_.block_at(rip_))
            owner_.jump_entry(*owner_.world_, rip_) = {rip_.value, compiled->entry};
    }

    bool call_vsyscall(Stop& stop) {
        const auto result = emulate_vsyscall(rip_, core_.general, *owner_.view_);
        if (!result) {
            stop.fault_address = rip_;
            return end(stop, StopKind::memory_fault, "memory fault");
        }
        rip_ = *result;
        if (sink_) {
            flush();
            sink_->discontinuity(rip_);
        }
        return false;
    }

    void refill() {
        const auto room = sink_ ? block_buffer_size : ~std::uint64_t{0} >> 2;
        const auto more = std::min(left_, room - static_cast<std::uint64_t>(core_.budget));
        core_.budget += static_cast<std::int64_t>(more);
        left_ -= more;
    }

    void empty_buffers() {
        core_.blocks = owner_.block_buffer_.data();
        core_.values = owner_.value_buffer_.data();
    }

    void flush() {
        if (!sink_) return;
        static_assert(sizeof(trace::BlockId) == sizeof(std::uint32_t));
        const std::span ids{reinterpret_cast<const trace::BlockId*>(owner_.block_buffer_.data()),
                            static_cast<std::size_t>(core_.blocks - owner_.block_buffer_.data())};
        const std::span values{
            owner_.value_buffer_.data(),
            static_cast<std::size_t>(core_.values - owner_.value_buffer_.data())};
        if (!ids.empty()) sink_->executed(ids, values);
        empty_buffers();
    }

    Interpreter& owner_;
    Core& core_;
    GuestState& state_;
    BlockSink* sink_;
    std::uint64_t most_;
    std::uint64_t left_;  // not yet in the Core's budget
    Address rip_;
};

Stop Interpreter::run(GuestState& state, MemoryView& view, std::uint64_t most_instructions,
                      BlockSink* sink) {
    world_ = &worlds_[sink ? 1 : 0];
    begin_epoch(view);
    return Run(*this, state, most_instructions, sink).until_stopped();
}

}  // namespace shadowprof::emu
