// Throws and catches exceptions without end: through several frames with destructors,
// past handlers of other types, rethrown, and from within a handler. So the unwinder runs, with its
// reading of unwind tables, its binary searches and its restoring of registers.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Counter {
    explicit Counter(unsigned long& at_exit) : count(at_exit) {}
    ~Counter() { ++count; }
    unsigned long& count;
};

[[gnu::noinline]] unsigned long descend(unsigned depth, unsigned long seed,
                                        unsigned long& unwound) {
    const Counter counter(unwound);
    const std::string name = "level " + std::to_string(seed % 977);
    if (depth == 0) {
        switch (seed % 4) {
            case 0:
                throw std::out_of_range(name);
            case 1:
                throw std::invalid_argument(name);
            case 2:
                throw seed;
            default:
                return name.size();
        }
    }
    try {
        return descend(depth - 1, seed, unwound) + 1;
    } catch (const std::invalid_argument&) {
        if (depth % 3 == 0) throw std::runtime_error(name);
        throw;
    }
}

}  // namespace

int main(int argc, char** argv) {
    const unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : ~0ul;
    unsigned long unwound = 0, caught[3] = {};
    double sum = 0;
    for (unsigned long round = 0; round < rounds; ++round) {
        try {
            sum += static_cast<double>(descend(static_cast<unsigned>(round % 7), round, unwound));
        } catch (const std::logic_error& error) {
            caught[0] += std::string(error.what()).size();
        } catch (const std::exception&) {
            ++caught[1];
        } catch (unsigned long seed) {
            caught[2] += seed % 3;
        }
    }
    std::printf("%lu %lu %lu %lu %g\n", unwound, caught[0], caught[1], caught[2], sum);
}
