// What a sample does when the guest reaches a system call.
//
// A sample must never act on the world, yet it should see as much code as it can. One table (rows
// in table.cpp, shown to users as docs/system-calls.md) says for every x86-64 Linux system call how
// far that goes, in the two places where guest code runs apart from its own process:
//
//   burst     Our interpreter runs a stopped thread's next instructions on a private view of its
//             memory. Nothing may be executed: a call is answered from what is known, or the burst
//             ends. Afterwards the thread goes on natively and repeats everything for real, so an
//             answered write has not happened twice: it has not happened at all.
//   replica   A forked copy of the program under PTRACE_SYSEMU: each call stops before it executes.
//             A call that touches only what fork copied (memory, signal dispositions, directory,
//             limits) may be executed in the replica. Open file descriptions, though, would be
//             shared with the target, including offsets, locks and status flags: the replica keeps
//             none of them (see Descriptors), and files are read for it at an offset kept here.
//             Output is answered with success. What files and names would look like afterwards is
//             kept too (faked_files.h), and a call that would show anything that is not kept ends
//             the replica.
//
// A call without a row is unsafe: it ends the sample.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "emu/syscalls/guest_facts.h"
#include "emu/syscalls/guest_memory.h"

namespace shadowprof::emu {

// `number` is eax: the kernel looks at no more of rax. Arguments are rdi, rsi, rdx, r10, r8, r9.
struct SystemCall {
    std::int32_t number = 0;
    std::array<std::uint64_t, 6> arguments{};

    bool operator==(const SystemCall&) const = default;
};

// The value for rax: a result, or -errno. What the call writes to memory has been written.
struct Answer {
    std::int64_t result = 0;

    bool operator==(const Answer&) const = default;
};

// What to do with a call of a replica.
struct Execute {  // as it is: rip -= 2 and PTRACE_SYSCALL
    bool operator==(const Execute&) const = default;
};
struct ExecuteInstead {  // another call, whose result the program gets
    SystemCall call;
    std::optional<std::int64_t> result{};  // if set, the program gets this when the call succeeds

    bool operator==(const ExecuteInstead&) const = default;
};
struct End {
    std::string reason;

    bool operator==(const End&) const = default;
};
using ReplicaAction = std::variant<Execute, ExecuteInstead, Answer, End>;

// Nothing: the burst ends, for system_call_end_reason().
std::optional<Answer> answer_in_burst(const SystemCall&, GuestFacts&, GuestMemory&);

ReplicaAction decide_in_replica(const SystemCall&, GuestFacts&, GuestMemory&);
// The caller reports every call that was executed, either the program's own or another in its
// place, so that descriptors and offsets stay up to date. `call` is the program's.
void note_executed(const SystemCall& call, std::int64_t result, GuestFacts&);
// Nothing: the program may see the result of a call that was executed. More is mapped in a replica
// than in the target, so a mapping that found no room here might have found it there.
std::optional<End> end_for_want_of_room(const SystemCall& call, std::int64_t result);

// "system call NAME", or "system call #N" for an unknown one.
std::string system_call_end_reason(std::int32_t number);
// These follow it where the program is ahead of its replica, and the file that was just there may
// have gone.
inline constexpr const char* was_replaced = "of what was replaced meanwhile";
inline constexpr const char* was_written = "of what was written to meanwhile";

// --- The table, for those who show it ---

enum class SystemCallClass : std::uint8_t { benign, output, input, miscellaneous, unsafe };
std::string_view to_string(SystemCallClass);

struct SystemCallTreatment {
    std::int32_t number = 0;
    std::string_view name;
    SystemCallClass kind{};
    std::string in_burst;  // in words
    std::string in_replica;
};
std::vector<SystemCallTreatment> system_call_treatments();

}  // namespace shadowprof::emu
