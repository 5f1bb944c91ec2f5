// A few system calls that a thread of the target makes for us. Once it has begun, it completes them
// and goes on with the program by itself, even if we are killed at any moment. Private to the room.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "ptrace/tracer.h"

namespace shadowprof::inject {

// An argument: a number, or what an earlier call of the plan returned, or where the plan's text
// lies.
struct PlannedArgument {
    enum class Kind : std::uint8_t { number, result, text };
    Kind kind = Kind::number;
    std::uint64_t value = 0;  // the number, or which call the result is of

    PlannedArgument(std::uint64_t number) : value(number) {}  // NOLINT: as if it were one
    static PlannedArgument result_of(std::uint64_t call, std::uint64_t plus = 0);
    static PlannedArgument the_text();
    std::uint64_t plus = 0;
};

struct PlannedCall {
    std::uint64_t number;
    std::vector<PlannedArgument> arguments;
};

struct Plan {
    static constexpr std::size_t most_calls = 6;
    std::vector<PlannedCall> calls;
    std::string text;
};

// The thread is stopped, `interrupted` or at an exec or a system call's exit, and is `interrupted`
// afterwards. `returned` is called with the result of each call while the thread is still stopped
// behind that call. False, and `why`, if nothing was done, or if the thread or its process ended
// meanwhile.
bool carry_out(ptrace::Tracer& tracer, ptrace::Thread& stopped, const Plan& plan,
               const std::function<void(std::size_t call, std::int64_t result)>& returned,
               std::string& why);

}  // namespace shadowprof::inject
