// What the kernel's system calls are like, whoever makes them. What samples do with a call is in
// emu/syscalls/table.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"

namespace shadowprof::proc {

using CallArguments = std::array<std::uint64_t, 6>;
using ArgumentNumber = std::uint8_t;  // from 0

enum class ChangesMappings : std::uint8_t {
    never,
    at_result,    // of as many bytes as the second argument says
    at_argument,  // from the first argument on, as many bytes as the second says
    moves,        // from there to the result, where there are as many as the third says
    anywhere,
};

// What a thread waits for that sleeps in the call.
struct Sleep {
    enum class For : std::uint8_t {
        other,
        descriptor,  // what `argument` is a descriptor of
        events,
        events_if_any,  // of as many descriptors as `argument` says; else for time to pass
        futex,
        wakeup,
        lock,
        time,
        child,
        socket,
        file,
    };
    For what = For::other;
    ArgumentNumber argument = 0;
};

// It answers EINTR to a thread that is woken without a handler to run.
struct Interruption {
    enum class Timeout : std::uint8_t {
        no_interruption,
        none,
        milliseconds,  // in `argument`
        timespec,      // where `argument` points
        of_receiving,  // of the socket that `argument` is; without one it does not answer EINTR
        of_sending,
    };
    Timeout timeout = Timeout::no_interruption;
    ArgumentNumber argument = 0;
    int timed_out = 0;  // the answer when time is over
};

// Broken off when a part is done, it answers how much that is.
struct Division {
    // What else must be so for an answer to be short because of us: a file without room, or a pipe
    // without bytes, is not our doing.
    enum class If : std::uint8_t {
        always,
        to_stream,
        to_no_pipe,
        from_endless_device,
        waits_for_all,
        waited_for_messages,
    };
    enum class Unit : std::uint8_t { whole, byte, message, piece };
    static constexpr ArgumentNumber moved_by_kernel = 6;

    Unit unit = Unit::whole;
    If only = If::always;
    ArgumentNumber count = 0;
    ArgumentNumber buffer = moved_by_kernel;  // moves on by what is done
};

// What it writes to the caller's memory, if that may be more than a page, or if it cannot be made
// once more because it tells an old value and sets a new one.
struct Writing {
    enum class Size : std::uint8_t {
        little,
        fixed,   // `count` bytes
        bytes,   // as many as argument `count` says
        groups,  // ids of as many
        pages,   // a byte for each page of as many bytes
    };
    Size size = Size::little;
    ArgumentNumber at = 0;
    std::uint8_t count = 0;
};

struct NewDescriptor {
    enum class From : std::uint8_t { nowhere, opening, duplicating };
    enum class ClosesOnExec : std::uint8_t { no, by_flags, by_command, unknown };
    From from = From::nowhere;
    ClosesOnExec closes_on_exec = ClosesOnExec::no;
    ArgumentNumber flags = 0;  // … or the command
};

struct CallFacts {
    std::int32_t number = -1;
    ChangesMappings changes_mappings = ChangesMappings::never;
    Sleep sleeps{};
    bool resumes = false;  // a thread that sleeps in it and is interrupted never notices
    Interruption interruption{};
    Division division{};
    Writing writes{};
    NewDescriptor descriptor{};
    bool returns_elsewhere = false;  // not to the instruction behind it, if at all

    // Which mappings a call has changed; none if it failed.
    std::vector<AddressRange> changed(const CallArguments& arguments, std::int64_t result) const;
    AddressRange written(const CallArguments& arguments) const;
    // Of the descriptor that it makes; nothing if the arguments do not say.
    std::optional<bool> asks_for_close_on_exec(const CallArguments& arguments) const;
};

// A call without a row is like none of this.
const CallFacts& facts_of_call(std::int64_t number);
std::span<const CallFacts> facts_of_calls();  // by number

}  // namespace shadowprof::proc
