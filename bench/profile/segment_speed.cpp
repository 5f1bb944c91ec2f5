// What counting segments costs: nanoseconds a segment for three kinds of programs. A few loops, an
// interpreter and a compiler differ in how many states times segments they have, and so in which
// cache holds them.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <vector>

#include "base/random.h"
#include "profile/common/segment_counter.h"
#include "profile/path/path_rule.h"

namespace shadowprof::profile {

namespace {

using trace::BlockExit;
using trace::BlockId;

constexpr std::size_t segments_per_chunk = 1u << 16;
constexpr std::uint64_t block_size = 16;

// A branch goes one of its ways, the first one most of the time.
struct Place {
    BlockId block{};
    std::vector<std::size_t> ways;
    double first_way = 1;
    bool calls = false;
    bool returns = false;
};

class SyntheticProgram {
  public:
    // A loop that calls functions of branches, loops and calls; some are called far more often
    // than others.
    void be_compiler_like(std::size_t functions, std::size_t blocks_in_function, Random& random) {
        const auto function_from = [&](std::size_t first) {
            const auto count = functions - first;
            const auto chosen =
                std::min({random.below(count), random.below(count), random.below(count)});
            return 1 + blocks_in_function * (first + chosen);
        };
        add(BlockExit::indirect_call, {}, 0);
        for (std::size_t f = 0; f < functions; ++f) {
            for (std::size_t b = 0; b + 1 < blocks_in_function; ++b) {
                const auto here = places_.size();
                const auto left = blocks_in_function - 1 - b;
                if (random.chance(0.04) && f + 1 < functions) {
                    add(BlockExit::call, {function_from(f + 1)}, 1);
                } else if (random.chance(0.12) && b > 0) {
                    const auto back = here - 1 - random.below(std::min<std::size_t>(b, 6));
                    add(BlockExit::conditional, {here + 1, back}, 0.3 + 0.6 * random.unit());
                } else {
                    const auto forward = here + 1 + random.below(std::min<std::size_t>(left, 5));
                    const double bias[] = {0.9999, 0.999, 0.99, 0.95, 0.7};
                    add(BlockExit::conditional, {here + 1, forward},
                        bias[random.below(std::size(bias))]);
                }
            }
            add(BlockExit::return_, {}, 1);
        }
        for (std::size_t i = 0; i < 4 * functions; ++i) places_[0].ways.push_back(function_from(0));
    }

    // Handlers of a few blocks; where a handler jumps when it is done is up to the program that is
    // interpreted, which has loops, too.
    void be_interpreter_like(std::size_t handlers, std::size_t instructions, Random& random) {
        for (std::size_t h = 0; h < handlers; ++h) {
            for (std::size_t b = 0; b < 3; ++b)
                add(BlockExit::conditional, {4 * h + b + 1, 4 * h + 3},
                    random.chance(0.8) ? 0.9999 : 0.95);
            add(BlockExit::indirect_jump, {}, 1);
        }
        for (std::size_t i = 0; i < instructions; ++i)
            interpreted_.push_back(4 * std::min(random.below(handlers), random.below(handlers)));
    }

    void be_loops() {
        for (std::size_t loop = 0; loop < 5; ++loop) {
            const auto at = 3 * loop;
            add(BlockExit::conditional, {at + 1, at + 2}, 0.9);
            add(BlockExit::conditional, {at, at + 2}, 0.99);
            add(BlockExit::jump, {(at + 3) % 15}, 1);
        }
    }

    // Cut as an engine cuts it that follows the likely ways until one leads backward or is not
    // known.
    std::vector<trace::SegmentChunk> run(std::size_t count, Random& random) {
        std::vector<trace::SegmentChunk> chunks;
        std::vector<std::size_t> stack;
        std::vector<BlockId> segment;
        std::size_t at = 0, interpreted = 0;
        for (std::size_t written = 0; written < count;) {
            const auto& place = places_[at];
            const auto& block = blocks.at(place.block);
            segment.push_back(place.block);
            auto way = random.chance(place.first_way) || place.ways.size() < 2
                           ? 0
                           : 1 + random.below(place.ways.size() - 1);
            std::size_t next = 0;
            if (block.exit == BlockExit::indirect_jump) {
                const bool loops = interpreted % 10 == 9 && random.chance(0.9);
                interpreted = loops ? interpreted - 9 : (interpreted + 1) % interpreted_.size();
                next = interpreted_[interpreted];
            } else if (!place.returns) {
                next = place.ways[way];
                if (place.calls) stack.push_back(at == 0 ? 0 : at + 1);
            } else if (!stack.empty()) {
                next = stack.back();
                stack.pop_back();
            }
            const auto& to = blocks.at(places_[next].block);
            const bool ends = way != 0 || place.returns || segment.size() == 8 ||
                              block.exit == BlockExit::indirect_jump ||
                              is_taken_backward(block, to.start, to.place);
            if (ends) {
                if (written % segments_per_chunk == 0) chunks.emplace_back();
                chunks.back().segments.push_back(id_of(segment));
                segment.clear();
                ++written;
            }
            at = next;
        }
        return chunks;
    }

    trace::BlockTable blocks;
    trace::SegmentTable segments;

  private:
    void add(BlockExit exit, std::vector<std::size_t> ways, double first_way) {
        trace::Block block;
        block.exit = exit;
        block.start = address_of(places_.size());
        block.place = {trace::ModuleId{0}, block.start.value, 0};
        block.instructions.resize(4);
        for (std::size_t i = 0; i < 4; ++i) {
            block.instructions[i].address = block.start + 4 * i;
            block.instructions[i].length = 4;
        }
        // One way of a conditional branch is to fall through.
        if (exit != BlockExit::indirect_jump && !ways.empty()) {
            const auto target = ways[0] == places_.size() + 1 ? ways.back() : ways[0];
            block.instructions.back().target = address_of(target);
        }
        places_.push_back({blocks.publish(std::move(block)).id, std::move(ways), first_way,
                           exit == BlockExit::call || exit == BlockExit::indirect_call,
                           exit == BlockExit::return_});
    }
    static Address address_of(std::size_t place) { return Address{(place + 1) * block_size}; }
    trace::SegmentId id_of(const std::vector<BlockId>& segment) {
        const auto [known, is_new] = known_.try_emplace(segment);
        if (is_new) known->second = segments.publish(segment);
        return known->second;
    }

    std::vector<Place> places_;
    std::vector<std::size_t> interpreted_;  // handlers
    std::map<std::vector<BlockId>, trace::SegmentId> known_;
};

double processor_time() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void print_speed(const char* what, SyntheticProgram& program, std::size_t count) {
    Random random{2};
    const auto chunks = program.run(count, random);
    PathFacts facts{program.blocks};
    SegmentCounter counter{facts, program.segments};
    counter.begin({});
    const auto each = [&](auto read) {
        const auto began = processor_time();
        for (const auto& chunk : chunks) read(chunk);
        return (processor_time() - began) * 1e9 / static_cast<double>(count);
    };
    const auto digest = [&](const trace::SegmentChunk& chunk) { counter.digest(chunk); };
    const auto first = each(digest);
    double again = std::numeric_limits<double>::max();
    constexpr int times = 5;
    for (int i = 0; i < times; ++i) again = std::min(again, each(digest));
    const auto began = processor_time();
    std::uint64_t paths = 0;
    const auto transitions = static_cast<double>(counter.transitions());
    const auto size = counter.drain([&](const Counts& counts) {
        for (const auto& path : counts.paths) paths += path.count;
    });
    const auto drained = processor_time() - began;
    std::printf(
        "%-12s %9.0f transitions, %7u segments of %.1f blocks: %5.2f ns a segment, first time "
        "%5.2f; "
        "drained in %.0f ms, %.0f ns a transition (%llu)\n",
        what, transitions, program.segments.size(),
        static_cast<double>(size.blocks) / (1 + times) / static_cast<double>(count), again, first,
        drained * 1e3, drained * 1e9 / transitions, static_cast<unsigned long long>(paths));
}

}  // namespace

}  // namespace shadowprof::profile

int main() {
    using namespace shadowprof::profile;
    shadowprof::Random random{1};
    SyntheticProgram loops, interpreter, compiler;
    loops.be_loops();
    print_speed("loops", loops, 20'000'000);
    interpreter.be_interpreter_like(150, 1000, random);
    print_speed("interpreter", interpreter, 20'000'000);
    compiler.be_compiler_like(150, 30, random);
    print_speed("compiler", compiler, 40'000'000);
}
