// What digesting costs: nanoseconds a block for each profile type, over a synthetic program, and
// nanoseconds a value for the estimators. With --trials N also how often a million distinct values
// push a value with a 5 % share out of a counting sample, in N trials (about 5 ms each).
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "profile/common/counting_sample.h"
#include "profile/registry.h"

namespace shadowprof::profile {

namespace {

using trace::BlockExit;
using trace::BlockId;

constexpr std::uint64_t function_size = 0x1000;
constexpr std::size_t blocks_per_chunk = 1u << 14;

class EvenlySpacedFunctions : public FunctionMap {
  public:
    Location function_of(Location location) override {
        location.offset -= location.offset % function_size;
        return location;
    }
};

// A program of functions. Each is a loop of branches around a call of the next function, and each
// block has `values_per_block` captured values. Nine of ten executions of a branch go the usual
// way.
class SyntheticProgram {
  public:
    SyntheticProgram(std::size_t functions, std::size_t values_per_block) {
        for (std::size_t f = 0; f < functions; ++f) {
            const auto base = (f + 1) * function_size;
            const auto next = (f + 2) * function_size;
            const bool is_last = f + 1 == functions;
            Function made;
            made.head = publish(base, BlockExit::conditional, base + 0x28, values_per_block);
            made.other = publish(base + 0x14, BlockExit::jump, base + 0x28, values_per_block);
            made.call = is_last ? publish(base + 0x28, BlockExit::length, 0, values_per_block)
                                : publish(base + 0x28, BlockExit::call, next, values_per_block);
            made.again = publish(base + 0x3c, BlockExit::conditional, base, values_per_block);
            made.leave = publish(base + 0x50, BlockExit::return_, 0, values_per_block);
            functions_.push_back(made);
        }
    }

    std::vector<trace::TraceChunk> run(std::size_t blocks) {
        std::vector<trace::TraceChunk> chunks;
        Random random{1};
        std::vector<BlockId> ids;
        while (ids.size() < blocks) call(0, ids, random);
        ids.resize(blocks);
        for (std::size_t i = 0; i < ids.size(); ++i) {
            if (i % blocks_per_chunk == 0) chunks.emplace_back();
            auto& chunk = chunks.back();
            chunk.blocks.push_back(ids[i]);
            // Usual values: constants, a few values, counters.
            const auto slots = table.at(ids[i]).slots.size();
            for (std::size_t s = 0; s < slots; ++s)
                chunk.values.push_back(s % 3 == 0 ? 1 : s % 3 == 1 ? random.below(6) : 8 * i);
        }
        return chunks;
    }

    trace::BlockTable table;

  private:
    struct Function {
        BlockId head, other, call, again, leave;
    };

    BlockId publish(std::uint64_t start, BlockExit exit, std::uint64_t target, std::size_t values) {
        trace::Block block;
        block.exit = exit;
        block.start = Address{start};
        block.place = {trace::ModuleId{0}, start, 0};
        block.instructions.resize(5);
        for (std::size_t i = 0; i < block.instructions.size(); ++i) {
            block.instructions[i].address = block.start + 4 * i;
            block.instructions[i].length = 4;
        }
        block.instructions.back().target = Address{target};
        for (std::size_t i = 0; i < values; ++i)
            block.slots.push_back(
                {trace::Capture::destination_values, 0, static_cast<std::uint8_t>(i), 64});
        return table.publish(std::move(block)).id;
    }

    void call(std::size_t f, std::vector<BlockId>& ids, Random& random) {
        const auto& function = functions_[f];
        do {
            ids.push_back(function.head);
            if (random.chance(0.1)) ids.push_back(function.other);
            ids.push_back(function.call);
            if (f + 1 < functions_.size()) call(f + 1, ids, random);
            ids.push_back(function.again);
        } while (random.chance(0.3));
        ids.push_back(function.leave);
    }

    std::vector<Function> functions_;
};

// The CPU time of this thread, so that other programs do not count.
double processor_time() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_for(Profiler& profiler, const std::vector<trace::TraceChunk>& chunks,
                   std::uint32_t sample) {
    trace::TraceStart start;
    start.sample = trace::SampleId{sample};
    const auto began = processor_time();
    const auto reader = profiler.open(start);
    for (const auto& chunk : chunks) reader->digest(chunk);
    reader->finish({});
    profiler.end_sample(start.sample, 1);
    return processor_time() - began;
}

// The best of several readings after a first one, in which what is learnt once is learnt.
void print_speeds(const char* what, std::size_t functions, std::size_t values_per_block,
                  std::size_t blocks, const std::set<std::string>& names) {
    SyntheticProgram program{functions, values_per_block};
    const auto chunks = program.run(blocks);
    std::printf("%s:\n", what);
    EvenlySpacedFunctions map;
    ProfileOptions options;
    options.names = names;
    for (const auto& profiler : make_profilers(options, program.table, map)) {
        if (profiler->name() == "stack") continue;
        seconds_for(*profiler, chunks, 0);
        double seconds = 1e9;
        for (std::uint32_t sample = 1; sample < 6; ++sample)
            seconds = std::min(seconds, seconds_for(*profiler, chunks, sample));
        const auto per_block = seconds * 1e9 / static_cast<double>(blocks);
        std::printf("  %-11s %6.2f ns a block", std::string{profiler->name()}.c_str(), per_block);
        if (values_per_block != 0)
            std::printf(", %6.2f ns a value", per_block / static_cast<double>(values_per_block));
        std::printf("\n");
    }
}

void print_estimator_speeds() {
    constexpr std::size_t updates = 20'000'000;
    struct Stream {
        const char* name;
        std::uint64_t distinct;
    };
    std::printf("a counting sample:\n");
    for (const auto& stream : {Stream{"one value", 1}, Stream{"6 values", 6},
                               Stream{"100 values", 100}, Stream{"a million values", 1'000'000}}) {
        Random random{1}, values{2};
        CountingSample sample{CountingSample::default_slots};
        std::vector<std::uint64_t> drawn(1u << 16);
        for (auto& value : drawn) value = mix_bits(values.below(stream.distinct));
        const auto began = processor_time();
        for (std::size_t i = 0; i < updates; ++i) sample.add(drawn[i % drawn.size()], random);
        const auto took = processor_time() - began;
        std::printf("  %-18s %6.2f ns an update\n", stream.name,
                    took * 1e9 / static_cast<double>(updates));
    }
}

void print_share_lost(int trials) {
    int lost = 0;
    for (int trial = 0; trial < trials; ++trial) {
        Random random{static_cast<std::uint64_t>(trial) + 1};
        CountingSample sample{CountingSample::default_slots};
        const std::uint64_t hot = 42;
        auto next = static_cast<std::uint64_t>(trial) << 32;
        for (std::uint64_t distinct = 0; distinct < 1'000'000;) {
            if (random.chance(0.05)) {
                sample.add(hot, random);
            } else {
                sample.add(mix_bits(next++), random);
                ++distinct;
            }
        }
        lost += sample.slots().find(hot) == nullptr;
    }
    std::printf("a 5 %% value among a million distinct ones: lost in %d of %d trials\n", lost,
                trials);
}

}  // namespace

}  // namespace shadowprof::profile

int main(int argc, char** argv) {
    using namespace shadowprof::profile;
    const std::set<std::string> control_flow{"path", "edge", "call", "method"};
    print_speeds("50 blocks", 10, 0, 10'000'000, control_flow);
    print_speeds("50 blocks, three values a block", 10, 3, 2'000'000, {"value"});
    print_estimator_speeds();
    if (argc == 3 && std::strcmp(argv[1], "--trials") == 0) print_share_lost(std::atoi(argv[2]));
}
