#include "emu/translator/unit_compiler.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace shadowprof::emu::translator {

using decoder::Flow;
using decoder::Instruction;
using decoder::OperandKind;
using trace::BlockExit;

namespace {

bool may_write_memory(const Instruction& instruction) {
    return std::ranges::any_of(instruction.operands(), [](const decoder::Operand& operand) {
        return operand.kind == OperandKind::memory && operand.writes;
    });
}

}  // namespace

UnitCompiler::UnitCompiler(UnitDirectory& directory, std::uint32_t tables)
    : directory_(directory),
      a_(w_.emitter()),
      instructions_(w_),
      recording_(w_),
      flow_(w_, instructions_, recording_, directory, tables) {}

std::optional<UnitCompiler::Result> UnitCompiler::compile(
    CodeArena& arena, std::span<const trace::Block* const> blocks, Version version, bool compares,
    std::uint32_t number, std::uint32_t first_exit) {
    if (!w_.begin(arena, blocks, version, compares, number, first_exit)) return {};
    flow_.begin_unit();
    may_be_written_ = compares && directory_.may_be_written(blocks.front()->start);
    write_entry();
    for (std::size_t block = 0; block < w_.unit().blocks.size() && !w_.has_left(); ++block)
        write_block(block);
    auto unit = w_.finish();
    const auto exits = flow_.exits_of(number);
    unit.exit_count = static_cast<std::uint32_t>(exits.size());
    return Result{std::move(unit), exits, w_.relocations()};
}

// ---- Entry

// Whether the status flags, as they are at `at`, may be read by anybody.
bool UnitCompiler::flags_matter(Address at, unsigned depth) const {
    const auto* block = directory_.block_at(at);
    if (!block) return true;
    auto left = decoder::status_flags;
    for (const auto& instruction : block->instructions) {
        // The kernel preserves the flags, so whatever follows may read them.
        if (instruction.flow == Flow::system_call) return true;
        if (instruction.flags_read & left) return true;
        if (!instruction.flags_conditional)
            left &= ~(instruction.flags_written & ~instruction.flags_undefined);
        if (!left) return false;
    }
    if (depth == 0) return true;
    const auto& last = block->last();
    switch (block->exit) {
        case BlockExit::jump:
        case BlockExit::call:
            return flags_matter(last.target, depth - 1);
        case BlockExit::length:
            return flags_matter(last.end(), depth - 1);
        case BlockExit::conditional:
            return flags_matter(last.target, depth - 1) || flags_matter(last.end(), depth - 1);
        default:
            return true;
    }
}

void UnitCompiler::save_flags() {
    a_.store_area(second_temp, decoder::rax);
    a_.flags_to_rax();
}

void UnitCompiler::restore_flags() {
    a_.flags_from_rax();
    a_.load_area(decoder::rax, second_temp);
}

void UnitCompiler::write_entry() {
    w_.mark();
    // A unit that compares itself does not know what changed code would read.
    const bool keep_flags = w_.unit().compares || flags_matter(w_.unit().start(), 2);
    if (keep_flags) save_flags();
    const bool in_bursts = w_.fixed_code().is_for_bursts();
    const bool in_parts = in_bursts && w_.unit().version == Version::lean;
    const auto look_later_if = [&](Condition condition) {
        w_.late([this, keep_flags, in_parts, jump = a_.jump_if(condition)] {
            a_.join(jump);
            if (keep_flags) restore_flags();
            if (in_parts) w_.note_entry();
            w_.ask(Request::look, w_.unit().start());
        });
    };
    if (w_.unit().version == Version::values || w_.unit().version == Version::accesses) {
        a_.count_down_area(offsetof(ThreadArea, left));
        look_later_if(Condition::s);
    }
    a_.test_stream_bits(in_parts    ? look_bits_in_parts
                        : in_bursts ? look_bits_in_window
                                    : look_bits);
    look_later_if(Condition::ne);
    if (const auto life = w_.fixed_code().life; life != 0) {
        a_.test_death(life);
        look_later_if(Condition::ne);
    }
    if (w_.unit().compares) compare_code(0);
    if (keep_flags) restore_flags();
}

// The flags are saved.
void UnitCompiler::compare_code(std::size_t from) {
    const auto& block = *w_.unit().blocks.front();
    const auto& instructions = block.instructions;
    const auto begin = instructions.begin() + static_cast<std::ptrdiff_t>(from);
    auto end = instructions.end();
    if (from > 0) end = std::find_if(begin, end, may_write_memory);
    if (end != instructions.end()) ++end;
    std::vector<std::byte> bytes;
    std::vector<std::size_t> borders;  // of what is compared, in turn its begin and end
    borders.push_back(0);
    for (auto each = begin; each != end; ++each) {
        const auto number = static_cast<std::size_t>(each - instructions.begin());
        if (const auto constant = trace::varying_constant(block, number)) {
            borders.push_back(bytes.size() + constant->offset);
            borders.push_back(borders.back() + constant->size);
        }
        const auto encoding = each->encoding();
        bytes.insert(bytes.end(), encoding.begin(), encoding.end());
    }
    borders.push_back(bytes.size());
    a_.store_area(third_temp, decoder::rcx);
    std::vector<std::uint8_t*> jumps;
    a_.move_imm(decoder::rcx, begin->address.value);
    for (std::size_t at = 0, border = 1; at < bytes.size();) {
        const auto left = borders[border] - at;
        if (left == 0) {
            at = borders[border + 1];
            border += 2;
            continue;
        }
        const unsigned size = left >= 4 ? 4 : left >= 2 ? 2 : 1;
        std::uint32_t value = 0;
        std::memcpy(&value, bytes.data() + at, size);
        a_.compare_memory(decoder::rcx, static_cast<std::int32_t>(at), value, size);
        jumps.push_back(a_.jump_if(Condition::ne));
        at += size;
    }
    a_.load_area(decoder::rcx, third_temp);
    auto* const over = a_.jump();
    for (auto* jump : jumps) a_.join(jump);
    w_.late([this, pc = begin->address, changed = a_.jump()] {
        a_.join(changed);
        a_.load_area(decoder::rcx, third_temp);
        restore_flags();
        if (pc == w_.unit().start()) return w_.ask_or_try_next_version();
        w_.ask_within(Request::changed, pc);
    });
    a_.join(over);
}

// ---- Blocks

void UnitCompiler::write_block(std::size_t index) {
    const auto& block = *w_.unit().blocks[index];
    flow_.begin_block(block.id);
    recording_.begin_block();
    for (std::size_t i = 0; i < block.instructions.size() && !w_.has_left(); ++i) {
        w_.move_to(index, i);
        write_instruction(index, i);
    }
}

void UnitCompiler::write_instruction(std::size_t block, std::size_t index) {
    const auto& instruction = w_.at(block, index);
    if (touches_gs(instruction)) return w_.leave_unsupported(instruction);
    recording_.before(block, index);
    if (instruction.flow != Flow::next) return flow_.write_branch(block);
    if (const auto constant = trace::varying_constant(*w_.unit().blocks[block], index))
        instructions_.write_with_constant_at(instruction, *constant);
    else
        instructions_.write(instruction);
    if (w_.has_left()) return;
    recording_.after(block, index);
    if (may_be_written_ && may_write_memory(instruction) &&
        index + 1 < w_.unit().blocks[block]->instructions.size()) {
        w_.move_to(block, index + 1);
        save_flags();
        compare_code(index + 1);
        restore_flags();
    }
    if (index + 1 == w_.unit().blocks[block]->instructions.size() && !w_.next_of(block))
        flow_.leave_directly(instruction.end());
}

}  // namespace shadowprof::emu::translator
