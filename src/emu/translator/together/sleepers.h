// Threads of a replica that sleep, in futex(2) or until a moment has come, and who wakes them.
//
// None of these calls reaches the kernel. All threads of a replica make their calls to the same
// thread of ours, one after the other, so to look at a word and to go to sleep is one step here, as
// it is in the kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/address.h"
#include "proc/memory.h"

namespace shadowprof::emu::translator {

class Sleepers {
  public:
    explicit Sleepers(const proc::Memory& memory) : memory_(memory) {}

    using Arguments = std::array<std::uint64_t, 6>;
    struct Outcome {
        enum class Kind : std::uint8_t { returns, sleeps, unknown } kind{};
        std::int64_t result = 0;
        std::vector<std::size_t> woken;  // whose calls return 0
    };
    // futex(2), by this thread. `now` is the replica's time, in nanoseconds.
    Outcome futex(std::size_t thread, const Arguments& arguments, double now);
    // nanosleep(2) and clock_nanosleep(2): nothing if there is no time to sleep.
    bool sleep(std::size_t thread, std::uint64_t number, const Arguments& arguments, double now);

    // All who wait for a change of this word.
    std::vector<std::size_t> wake_all(Address at);

    struct Woken {
        std::size_t thread;
        bool timed_out;  // in a futex; otherwise it only slept
    };
    // Whose time has come; the first of all, `at_once`.
    std::optional<Woken> over(double now, bool at_once);
    bool will_anyone_wake() const;

  private:
    struct Sleeper {
        std::size_t thread;
        Address at;  // 0: it only sleeps
        std::uint32_t bits = ~0u;
        std::optional<double> until = {};
    };
    std::size_t wake(Address at, std::uint32_t most, std::uint32_t bits, Outcome& outcome);
    std::optional<double> span_at(Address timespec, bool is_moment, int clock) const;

    const proc::Memory& memory_;
    std::vector<Sleeper> asleep_;  // in the order in which they went to sleep
};

}  // namespace shadowprof::emu::translator
