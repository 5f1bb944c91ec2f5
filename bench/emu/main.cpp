// How many guest instructions a second the interpreter executes.
//
//     bench-emu
//     bench-emu KERNEL ROUNDS   (what the others are given to run)
//
// On integer loops of its own: without captures, with the blocks that paths and edges are made of,
// and with values as well; beside the stepper, Valgrind and the bare CPU on the same loops.
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "interpreted.h"
#include "others.h"

namespace {

using namespace shadowprof;
using namespace shadowprof::bench;

constexpr std::uint64_t interpreted_instructions = 200'000'000, stepped_instructions = 20'000;

// Kernels are called for about so many instructions.
std::uint64_t rounds_for(const Kernel& kernel, std::uint64_t instructions) {
    constexpr std::uint64_t few = 1000;
    const auto of_few = count_instructions(kernel, 2 * few) - count_instructions(kernel, few);
    return instructions * few / of_few;
}

std::string millions(std::optional<double> per_second) {
    return per_second ? fmt::format("{:.4g}", *per_second / 1e6) : "-";
}

void print_header() {
    fmt::print("million instructions a second\n");
    fmt::print("{:<11}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10}{:>10}\n", "loop",
               "interpreter", "blocks", "and values", "stepper", "valgrind", "lackey", "bare CPU",
               "blocks/i", "values/i");
}

void print_row(const Kernel& kernel) {
    const trace::CapturePlan values_plan = trace::Capture::destination_values;
    const auto plain = measure_interpreter(kernel, {}, false, interpreted_instructions);
    const auto blocks = measure_interpreter(kernel, {}, true, interpreted_instructions);
    const auto values = measure_interpreter(kernel, values_plan, true, interpreted_instructions);
    const auto stepper = measure_stepper(kernel, values_plan, stepped_instructions);
    const auto valgrind =
        measure_process({"valgrind", "--tool=none"}, kernel, rounds_for(kernel, 500'000'000));
    const auto lackey =
        measure_process({"valgrind", "--tool=lackey"}, kernel, rounds_for(kernel, 50'000'000));
    const auto bare = measure_process({}, kernel, rounds_for(kernel, 2'000'000'000));
    fmt::print("{:<11}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10.2f}{:>10.2f}\n", kernel.name,
               millions(plain.instructions_per_second), millions(blocks.instructions_per_second),
               millions(values.instructions_per_second), millions(stepper), millions(valgrind),
               millions(lackey), millions(bare), values.blocks_per_instruction,
               values.values_per_instruction);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3) {
        const auto* kernel = find_kernel(argv[1]);
        if (!kernel) return 2;
        // Its result has to be used, or it need not be computed.
        volatile auto result = kernel->run(std::strtoull(argv[2], nullptr, 0));
        static_cast<void>(result);
        return 0;
    }
    print_header();
    for (const auto& kernel : kernels()) print_row(kernel);
}
