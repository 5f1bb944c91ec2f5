// A guest for tests: bytes at addresses, and a view of them; nothing runs natively.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "../hexadecimal.h"
#include "emu/interpreter/interpreter.h"
#include "emu/interpreter/memory_view.h"

namespace shadowprof::emu {

class TestGuest : public PageSource, public BlockSource, public BlockSink {
  public:
    struct Contents {
        std::vector<std::byte> bytes = std::vector<std::byte>(page_size);
        bool writable = true;
    };

    explicit TestGuest(trace::CapturePlan plan = {}) : plan_(plan) {}

    void map(Address at, bool writable = true) { pages_[at.value & page_mask].writable = writable; }
    void put(Address at, std::span<const std::byte> bytes) {
        for (std::size_t n = 0; n < bytes.size(); ++n) {
            const auto to = at.value + n;
            pages_[to & page_mask].bytes[to & ~page_mask] = bytes[n];
        }
    }
    void put(Address at, const std::string& hexadecimal) { put(at, bytes_of(hexadecimal)); }
    // Code there may be replaced: it is not read-only file contents.
    void let_code_change(bool yes) { code_changes_ = yes; }

    Fetched fetch(Address page, std::byte* into, std::size_t begin, std::size_t end) override {
        ++fetches;
        fetched_bytes += end - begin;
        const auto known = pages_.find(page.value);
        if (known == pages_.end()) return {};
        std::memcpy(into + begin, known->second.bytes.data() + begin, end - begin);
        return {.readable = true, .writable = known->second.writable};
    }

    const trace::Block* block_at(Address at, MemoryView& view) override {
        trace::Block block;
        block.instructions = trace::decode_block(view, at);
        if (block.instructions.empty()) return nullptr;
        block.exit = trace::exit_of(block.instructions);
        return &publish(std::move(block), at);
    }
    const trace::Block& cut(const trace::Block& whole, std::size_t instructions) override {
        trace::Block part;
        part.exit = trace::BlockExit::cut;
        part.instructions.assign(
            whole.instructions.begin(),
            whole.instructions.begin() + static_cast<std::ptrdiff_t>(instructions));
        return publish(std::move(part), whole.start);
    }
    bool may_change(Address) override { return code_changes_; }

    void executed(std::span<const trace::BlockId> ids,
                  std::span<const std::uint64_t> values_of_them) override {
        for (const auto id : ids) blocks.push_back(&table_.at(id));
        values.insert(values.end(), values_of_them.begin(), values_of_them.end());
    }
    void discontinuity(Address continuation) override { continuations.push_back(continuation); }

    // What was recorded.
    std::vector<const trace::Block*> blocks;
    std::vector<std::uint64_t> values;
    std::vector<Address> continuations;
    int fetches = 0;
    std::size_t fetched_bytes = 0;

    std::size_t recorded_instructions() const {
        std::size_t sum = 0;
        for (const auto* block : blocks) sum += block->instructions.size();
        return sum;
    }

  private:
    const trace::Block& publish(trace::Block block, Address at) {
        block.start = at;
        block.slots = trace::slots_of(block.instructions, plan_);
        return table_.publish(std::move(block));
    }

    trace::CapturePlan plan_;
    trace::BlockTable table_;
    std::map<std::uint64_t, Contents> pages_;
    bool code_changes_ = false;
};

inline constexpr Address code_at{0x401000}, data_at{0x500000}, stack_top{0x7ffe00};

// A guest with a program, a page of data and a stack.
struct TestProgram {
    explicit TestProgram(const std::string& code, trace::CapturePlan plan = {})
        : guest(plan), view(guest), interpreter(guest) {
        guest.put(code_at, code);
        guest.map(data_at);
        guest.map(stack_top);
        state.rip = code_at;
        state.general[decoder::rsp] = stack_top.value;
    }
    Stop run(std::uint64_t most = 1000) { return interpreter.run(state, view, most, &guest); }
    Stop run_unrecorded(std::uint64_t most = 1000) {
        return interpreter.run(state, view, most, nullptr);
    }

    TestGuest guest;
    MemoryView view;
    Interpreter interpreter;
    GuestState state;
};

}  // namespace shadowprof::emu
