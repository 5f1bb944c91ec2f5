// How many guest instructions a second the interpreter executes.
//
//     bench-emu [INSTRUCTIONS]
//
// On integer loops of its own, without captures and with those of the path, edge and value
// profiles, beside the same loops on the bare CPU.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <vector>

#include "emu/interpreter.h"
#include "kernels.h"
#include "ptrace/memory.h"
#include "trace/block.h"

namespace {

using namespace shadowprof;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// This process as the guest.
class OwnPages : public emu::PageSource {
  public:
    void fetch(Address first, std::span<Page> pages) override {
        for (std::size_t n = 0; n < pages.size(); ++n) {
            const auto at = first + n * emu::page_size;
            if (memory_.read(at, {pages[n].into, emu::page_size}) == emu::page_size)
                pages[n].readable = pages[n].writable = true;
            else
                pages[n].into = nullptr;
        }
    }

  private:
    ptrace::Memory memory_{getpid()};
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

struct Speed {
    double instructions_per_second = 0;
    double blocks_per_instruction = 0, values_per_instruction = 0;
};

Speed measure(const bench::Kernel& kernel, trace::CapturePlan plan, bool recorded,
              std::uint64_t instructions) {
    OwnPages pages;
    OwnBlocks blocks(plan);
    emu::MemoryView view(pages);
    emu::Interpreter interpreter(blocks);
    Stack stack;
    Counter counter;
    const auto run = [&](std::uint64_t most) {
        emu::GuestState state;
        state.rip = {reinterpret_cast<std::uint64_t>(kernel.run)};
        state.general[decoder::rsp] = stack.top();
        state.general[decoder::rdi] = ~std::uint64_t{0} >> 1;
        return interpreter.run(state, view, most, recorded ? &counter : nullptr).instructions;
    };
    run(instructions / 10);  // compiles
    counter = {};
    const auto start = Clock::now();
    const auto done = static_cast<double>(run(instructions));
    const auto seconds = seconds_since(start);
    return {done / seconds, static_cast<double>(counter.blocks) / done,
            static_cast<double>(counter.values) / done};
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t instructions = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 100'000'000;
    fmt::print("{:<12}{:>16}{:>16}{:>16}{:>12}{:>12}   (million instructions a second)\n", "loop",
               "no captures", "blocks", "and values", "blocks/i", "values/i");
    for (const auto& kernel : bench::kernels()) {
        const auto plain = measure(kernel, {}, false, instructions);
        const auto paths = measure(kernel, {}, true, instructions);
        const auto values = measure(kernel, trace::Capture::destination_values, true, instructions);
        fmt::print("{:<12}{:>16.1f}{:>16.1f}{:>16.1f}{:>12.2f}{:>12.2f}\n", kernel.name,
                   plain.instructions_per_second / 1e6, paths.instructions_per_second / 1e6,
                   values.instructions_per_second / 1e6, values.blocks_per_instruction,
                   values.values_per_instruction);
    }
}
