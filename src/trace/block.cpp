#include "trace/block.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "decoder/decoder.h"

namespace shadowprof::trace {
namespace {

using decoder::Flow;

// Most blocks are shorter than this, so that one read does.
constexpr std::size_t bytes_per_read = 128;

// The code from an address on, read piece by piece as it is needed.
class CodeWindow {
  public:
    CodeWindow(CodeSource& code, Address start) : code_(code), start_(start) {}

    // What is readable from `offset` on, at least as much as an instruction can be long if it
    // exists.
    std::span<const std::byte> from(std::size_t offset) {
        while (size_ < offset + decoder::longest_instruction && !at_end_) {
            const auto wanted = std::min(bytes_per_read, bytes_.size() - size_);
            const auto got = code_.read_code(start_ + size_, {bytes_.data() + size_, wanted});
            at_end_ = got < wanted || wanted == 0;
            size_ += got;
        }
        return {bytes_.data() + offset, size_ - offset};
    }

  private:
    CodeSource& code_;
    Address start_;
    std::size_t size_ = 0;
    bool at_end_ = false;
    std::array<std::byte, most_bytes_in_block> bytes_;
};

}  // namespace

BlockExit exit_of(Flow flow) {
    switch (flow) {
        case Flow::next:
            return BlockExit::cut;
        case Flow::conditional:
            return BlockExit::conditional;
        case Flow::jump:
            return BlockExit::jump;
        case Flow::indirect_jump:
            return BlockExit::indirect_jump;
        case Flow::call:
            return BlockExit::call;
        case Flow::indirect_call:
            return BlockExit::indirect_call;
        case Flow::return_:
            return BlockExit::return_;
        case Flow::system_call:
            return BlockExit::system_call;
        case Flow::trap:
            return BlockExit::trap;
    }
    return BlockExit::cut;
}

BlockExit exit_of(std::span<const decoder::Instruction> instructions) {
    const auto flow = instructions.back().flow;
    return flow == Flow::next && instructions.size() == most_instructions_in_block
               ? BlockExit::length
               : exit_of(flow);
}

std::vector<decoder::Instruction> decode_block(CodeSource& code, Address at) {
    // Of its final size at once, for large programs have many.
    thread_local std::vector<decoder::Instruction> instructions;
    instructions.clear();
    CodeWindow window(code, at);
    std::size_t offset = 0;
    while (instructions.size() < most_instructions_in_block) {
        auto instruction = decoder::decode(window.from(offset), at + offset);
        if (!instruction) break;
        offset += instruction->length;
        instructions.push_back(std::move(*instruction));
        if (instructions.back().flow != Flow::next) break;
    }
    return {instructions.begin(), instructions.end()};
}

namespace {

// But for a constant that varies.
bool are_same(std::span<const std::byte> a, std::span<const std::byte> b,
              std::optional<decoder::ConstantField> varying) {
    if (!varying) return std::ranges::equal(a, b);
    const auto end = std::size_t{varying->offset} + varying->size;
    return a.size() == b.size() &&
           std::ranges::equal(a.first(varying->offset), b.first(varying->offset)) &&
           std::ranges::equal(a.subspan(end), b.subspan(end));
}

}  // namespace

std::optional<decoder::ConstantField> varying_constant(const Block& block,
                                                       std::size_t instruction) {
    if (!(block.varying_constants >> instruction & 1)) return {};
    return decoder::constant_field(block.instructions[instruction]);
}

bool has_code(const Block& block, std::span<const decoder::Instruction> instructions) {
    if (block.instructions.size() != instructions.size()) return false;
    for (std::size_t n = 0; n < instructions.size(); ++n) {
        const auto known = block.instructions[n].encoding(), other = instructions[n].encoding();
        if (!are_same(known, other, varying_constant(block, n))) return false;
    }
    return true;
}

std::optional<std::uint64_t> constants_that_differ(
    std::span<const decoder::Instruction> instructions,
    std::span<const decoder::Instruction> others) {
    if (instructions.size() != others.size()) return {};
    std::uint64_t differing = 0;
    for (std::size_t n = 0; n < instructions.size(); ++n) {
        const auto a = instructions[n].encoding(), b = others[n].encoding();
        if (std::ranges::equal(a, b)) continue;
        const auto field = decoder::constant_field(instructions[n]);
        if (!field || !are_same(a, b, field)) return {};
        differing |= std::uint64_t{1} << n;
    }
    return differing;
}

std::optional<bool> still_holds(const Block& block, CodeSource& memory) {
    std::array<std::byte, most_bytes_in_block> now;
    const std::span bytes{now.data(), block.size()};
    if (memory.read_code(block.start, bytes) != bytes.size()) return {};
    for (std::size_t n = 0; n < block.instructions.size(); ++n) {
        const auto& i = block.instructions[n];
        const auto now_there = bytes.subspan(i.address - block.start, i.length);
        if (!are_same(i.encoding(), now_there, varying_constant(block, n))) return false;
    }
    return true;
}

BlockTable::BlockTable() : pages_(std::make_unique<std::atomic<Page*>[]>(most_pages)) {}

BlockTable::~BlockTable() {
    for (std::size_t page = 0; page < most_pages; ++page)
        delete pages_[page].load(std::memory_order_relaxed);
}

const Block& BlockTable::publish(Block block) {
    const std::lock_guard lock{publishing_};
    const auto id = size_.load(std::memory_order_relaxed);
    SHADOWPROF_ASSERT(id / blocks_per_page < most_pages, "too many blocks");
    auto& page = pages_[id / blocks_per_page];
    if (id % blocks_per_page == 0) page.store(new Page, std::memory_order_release);
    auto& place = (*page.load(std::memory_order_relaxed))[id % blocks_per_page];
    block.id = BlockId{id};
    place = std::move(block);
    size_.store(id + 1, std::memory_order_release);
    return place;
}

const Block& BlockTable::at(BlockId id) const {
    const auto index = static_cast<std::uint32_t>(id);
    SHADOWPROF_ASSERT(index < size(), "block " + std::to_string(index));
    return (
        *pages_[index / blocks_per_page].load(std::memory_order_acquire))[index % blocks_per_page];
}

}  // namespace shadowprof::trace
