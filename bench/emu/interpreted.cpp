#include "interpreted.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>

#include "base/clock.h"
#include "emu/interpreter/interpreter.h"
#include "proc/memory.h"

namespace shadowprof::bench {

namespace {

using Clock = std::chrono::steady_clock;

// This process as the guest.
class OwnPages : public emu::PageSource {
  public:
    Fetched fetch(Address page, std::byte* into, std::size_t begin, std::size_t end) override {
        const bool is_there =
            memory_.read(page + begin, {into + begin, end - begin}) == end - begin;
        return {.readable = is_there, .writable = is_there};
    }

  private:
    proc::Memory memory_{getpid()};
};

class OwnBlocks : public emu::BlockSource {
  public:
    explicit OwnBlocks(trace::CapturePlan plan) : plan_(plan) {}

    const trace::Block* block_at(Address at, emu::MemoryView& view) override {
        trace::Block block;
        block.instructions = trace::decode_block(view, at);
        if (block.instructions.empty()) return nullptr;
        return &publish(std::move(block), at, trace::BlockExit::jump);
    }
    const trace::Block& cut(const trace::Block& whole, std::size_t instructions) override {
        trace::Block part;
        part.instructions.assign(
            whole.instructions.begin(),
            whole.instructions.begin() + static_cast<std::ptrdiff_t>(instructions));
        return publish(std::move(part), whole.start, trace::BlockExit::cut);
    }
    bool may_change(Address) override { return false; }

  private:
    const trace::Block& publish(trace::Block block, Address at, trace::BlockExit exit) {
        block.start = at;
        block.exit = exit;
        block.slots = trace::slots_of(block.instructions, plan_);
        return table_.publish(std::move(block));
    }

    trace::CapturePlan plan_;
    trace::BlockTable table_;
};

class Counter : public emu::BlockSink {
  public:
    void executed(std::span<const trace::BlockId> b, std::span<const std::uint64_t> v) override {
        blocks += b.size();
        values += v.size();
    }
    void discontinuity(Address) override {}
    std::uint64_t blocks = 0, values = 0;
};

class Stack {
  public:
    Stack()
        : memory_(static_cast<std::byte*>(
              ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
    ~Stack() { ::munmap(memory_, size); }
    Stack(const Stack&) = delete;
    Stack& operator=(const Stack&) = delete;
    // As a function finds it, with a return address that leads nowhere.
    std::uint64_t top() const { return reinterpret_cast<std::uint64_t>(memory_ + size - 72); }

  private:
    static constexpr std::size_t size = 1u << 20;
    std::byte* memory_;
};

// The interpreter, about to call a kernel.
class Interpreted {
  public:
    Interpreted(const Kernel& kernel, trace::CapturePlan plan)
        : kernel_(kernel), blocks_(plan), view_(pages_), interpreter_(blocks_) {}

    // How many instructions were executed: fewer than `most` if the kernel returned.
    std::uint64_t run(std::uint64_t rounds, std::uint64_t most, emu::BlockSink* sink) {
        emu::GuestState state;
        state.rip = {reinterpret_cast<std::uint64_t>(kernel_.run)};
        state.general[decoder::rsp] = stack_.top();
        state.general[decoder::rdi] = rounds;
        return interpreter_.run(state, view_, most, sink).instructions;
    }

  private:
    const Kernel& kernel_;
    OwnPages pages_;
    OwnBlocks blocks_;
    emu::MemoryView view_;
    emu::Interpreter interpreter_;
    Stack stack_;
};

}  // namespace

std::uint64_t count_instructions(const Kernel& kernel, std::uint64_t rounds) {
    return Interpreted(kernel, {}).run(rounds, ~std::uint64_t{0} >> 1, nullptr);
}

InterpreterSpeed measure_interpreter(const Kernel& kernel, trace::CapturePlan plan, bool recorded,
                                     std::uint64_t instructions) {
    Interpreted interpreted(kernel, plan);
    Counter counter;
    const auto run = [&](std::uint64_t most) {
        return interpreted.run(endless, most, recorded ? &counter : nullptr);
    };
    run(instructions / 10);  // compiles
    counter = {};
    const auto start = Clock::now();
    const auto done = static_cast<double>(run(instructions));
    const std::chrono::duration<double> seconds = Clock::now() - start;
    return {done / seconds.count(), static_cast<double>(counter.blocks) / done,
            static_cast<double>(counter.values) / done};
}

}  // namespace shadowprof::bench
