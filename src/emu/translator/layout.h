// What translated code and the profiler share: memory of one file, mapped into both.
//
// In the target it lies at fixed places that translated code can name in 32 bits:
//
//     base            the lookup tables of indirect branches, one for each version of the code
//                     the threads' areas, which gs points to
//     base + streams  stream slots: what threads write down of what they do
//     … + alias       the same stream slots once more
//
// A thread writes into the lower half of its slot, at r15. Every unit of code looks at one bit of
// that pointer when it is entered: it is set when the lower half is full, and then the unit asks
// for another slot. (The upper half has room for what a unit can still write.) The same look serves
// to call a running thread: its pointer is moved to the alias of the slot, which is the same
// memory, and has another of those bits set.
//
// In a burst windows have the lower quarter, and the lean version writes into small parts behind
// it; each looks at another bit. At the end of each part the thread looks at the clock, and goes on
// to the next part by itself as long as its burst lasts (fixed_code.cpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/address.h"
#include "base/x86.h"
#include "emu/syscalls/table.h"

namespace shadowprof::emu::translator {

// How code of the guest is translated. Every version writes down where the thread went; some write
// down more.
enum class Version : std::uint8_t {
    lean,
    values,    // also the values of slots
    accesses,  // also the addresses of accesses
    timed,     // also clock readings before and after some of the loads
};
inline constexpr std::size_t version_count = 4;

// How a thread in the cache reaches the profiler.
enum class Asking : std::uint8_t {
    by_stops,   // a system call, at which the profiler stops it; so do the guest's own calls
    by_memory,  // it waits for an answer in its area; system calls are executed from the cache
    // The same; and it is in the cache only for a burst, of which it notes how long it took, and
    // leaves by itself when that is over.
    in_bursts,
};

// What code asks the profiler for when it leaves the cache.
enum class Request : std::uint64_t {
    look,         // the slot is full, or the thread was called, or its window is over
    link,         // an exit that leads to code not translated yet: `exit` says which
    find,         // an indirect branch to an address that is not in the table
    changed,      // the guest's code is not what was translated, in the unit `exit`
    unsupported,  // an instruction that cannot be translated, in the unit `exit`
    call,         // the profiler has to see the system call at `pc`, which was not executed
    nothing,      // its request was dealt with, but it cannot be answered yet
    called,       // the system call before `pc` was executed; its number is in `exit`
};

// What became of what a thread has asked for by memory.
enum class Answered : std::uint32_t {
    not_yet,
    goes_on,
    has_left,  // its burst is over, and it is on the way to its own code
};

// How a thread in a burst goes on at a look. Whoever wants it to ask says so here.
enum class Driven : std::uint32_t {
    asks,
    through_parts,   // to the next part of its stream until its time is over
    through_window,  // it has come to its capture window, and leaves when that is over
    leaves,          // whatever it would ask
};

// A part of the stream that a thread in a burst writes in the lean version, and what it notes at
// its end.
struct StreamPart {
    std::uint64_t begin;  // 0 behind the last part: the thread asks for more
    std::uint64_t end;
    std::uint64_t at;                                            // the time stamp counter
    std::uint64_t calls_began, calls_over_low, calls_over_high;  // as in its area
};
inline constexpr std::size_t most_parts = 18;

// One thread's engine state; gs points to it. Guest registers are put here while code needs the
// real ones for itself.
struct alignas(64) ThreadArea {
    std::uint64_t stream;  // where to write next, while r15 holds something else
    std::uint64_t r15;     // the guest's
    std::uint64_t pc;      // where the guest is, when code leaves the cache
    Request request;
    std::uint64_t exit;
    std::int64_t left;        // units to be executed before the window of values is over
    std::int64_t loads_left;  // loads to be executed before one is timed
    std::uint64_t reading;    // where its LoadReading is to be written
    std::uint64_t rax, rcx, rdx, r11;
    std::uint64_t temp[3];
    std::uint64_t guest_gs;  // the guest's own gs base
    // The guest's flag for alignment checks, at its place among the flags. In the cache it is never
    // set, because what is written down is not aligned.
    std::uint64_t alignment_check;

    // The rest is for threads that ask by memory.
    std::uint64_t rsi, rdi, r10;
    std::uint64_t flags;        // as HostAssembler::flags_to_rax() has them
    std::uint64_t place;        // this area's, as the target sees it
    std::uint64_t resume;       // where in the cache it goes on after an answer
    std::uint64_t behind_call;  // the same after a system call
    Answered answered;
    std::uint32_t sleeps;   // it does so in the kernel
    std::uint32_t in_call;  // it makes a system call from the cache, whose number is in `rax`

    // The rest is for bursts.
    Driven driven;
    std::uint64_t went_on_at;  // when it was last answered, and asked: the time stamp counter
    std::uint64_t asked_at;
    std::uint64_t lasts;  // ticks for which it may go on when it is answered
    std::uint64_t until;  // … and when these are over
    std::uint64_t part;   // the StreamPart that it writes, as the target sees it
    // A capture window that follows the last part, if there is to be one: where it writes then, and
    // the lookup table of its version; and when it has come to it.
    std::uint64_t window_stream, window_table, window_began;
    // Since then, of its system calls that were made from the cache: the sum of the times when they
    // began, and of those when they were over, in halves.
    std::uint64_t calls_began, calls_over_low, calls_over_high;
    std::uint64_t calls;    // how many
    std::uint64_t way_out;  // FixedCode::way_out(), of this area
};

inline constexpr std::size_t most_threads = 512;
// By the low 16 bits of an address.
inline constexpr std::size_t table_entries = 1u << 16;
inline constexpr std::size_t table_size = table_entries * sizeof(std::uint64_t);

inline constexpr std::size_t most_calls = 512;

// What all threads share with the profiler if they ask by memory.
struct Exchange {
    std::uint32_t bell;             // incremented by threads that want an answer
    std::uint32_t profiler_sleeps;  // at the bell
    // The profiler's thread; when that ends, however it does, the kernel sets `is_dead`.
    std::uint32_t life;
    static constexpr std::uint32_t is_dead = 0x4000'0000;  // FUTEX_OWNER_DIED
    // The kernel refused to wake the profiler, which therefore must not sleep for long.
    std::uint32_t bell_is_mute;
    std::int64_t patience[2];  // a timespec: a sleeping thread looks so often whether it is alive
    std::uint64_t rounds;      // for which a thread looks for an answer before it sleeps
    // No filter of system calls (seccomp) can have come over a thread in the cache. Otherwise it
    // makes none of ours: it goes on looking, and the profiler looks by itself.
    std::uint32_t may_call;
    CallInCache calls[most_calls];  // by number
    std::uint64_t sign;             // that the program has put nothing else here; not 0
};

inline constexpr std::size_t areas_at = version_count * table_size;
inline constexpr std::size_t exchange_at = areas_at + most_threads * sizeof(ThreadArea);
inline constexpr std::size_t streams_at = 4u << 20;
// The parts of each thread's stream, and one behind the last.
inline constexpr std::size_t parts_of_thread = (most_parts + 1) * sizeof(StreamPart);
inline constexpr std::size_t stream_parts_at =
    (exchange_at + sizeof(Exchange) + cache_line - 1) / cache_line * cache_line;
static_assert(stream_parts_at + most_threads * parts_of_thread <= streams_at);

inline constexpr std::uint64_t slot_size = 1u << 19;
inline constexpr std::uint64_t slot_room = slot_size / 2;
inline constexpr std::size_t streams_size = most_threads * slot_size;
inline constexpr std::size_t data_size = streams_at + streams_size;

// The bits of a stream pointer that a unit looks at.
inline constexpr std::uint64_t slot_is_full = slot_room;
inline constexpr std::uint64_t alias = 1u << 30;
inline constexpr std::uint32_t look_bits = slot_is_full | alias;
// The same in bursts: in the lean version, in which a unit writes an id, and arguments, and in the
// others.
inline constexpr std::uint64_t part_room = 1u << 13, window_room = 1u << 17;
inline constexpr std::uint64_t parts_at = window_room + window_room / 2;
inline constexpr std::uint32_t look_bits_in_parts = part_room | alias,
                               look_bits_in_window = window_room | alias;
// A unit writes at most an id and its values.
inline constexpr std::size_t most_values_in_unit = 4096;
static_assert(most_values_in_unit * 8 + 4 <= slot_room);

// A load that was timed.
struct LoadReading {
    std::uint32_t begin, end;  // the clock's low bits, before and after
    std::uint32_t block, access;
    std::uint64_t address;
    std::int64_t next;  // loads from this one to the next to be timed; chosen beforehand
};
static_assert(sizeof(LoadReading) == 32);

// Readings lie at the end of each thread's slot. When they are used up, nothing more is timed.
inline constexpr std::size_t most_readings = 1024;
inline constexpr std::uint64_t readings_in_slot = slot_size - most_readings * sizeof(LoadReading);
static_assert(slot_room + most_values_in_unit * 8 + 4 <= readings_in_slot);
static_assert(window_room + most_values_in_unit * 8 + 4 <= parts_at);
static_assert(parts_at + most_parts * 2 * part_room <= readings_in_slot);

// The size of a piece of the code cache.
inline constexpr std::size_t arena_size = 256u << 20;

// The lookup tables of indirect branches, one for each version of the code, by the low bits of the
// branch's target. Most processes of a family never have code of more than one version, so a table
// is filled when it is first of use: half a megabyte takes as long as to translate twenty units.
class LookupTables {
  public:
    explicit LookupTables(std::uint64_t* words) : words_(words) {}

    // From now on nothing is found: every branch goes there.
    void clear(Address nothing_found) {
        nothing_found_ = nothing_found;
        for (std::size_t version = 0; version < version_count; ++version)
            if (is_in_use_[version]) fill(version);
    }
    // Before code of this version, or a thread that looks for it, can come by.
    std::uint64_t* use(Version which) {
        const auto version = static_cast<std::size_t>(which);
        if (!std::exchange(is_in_use_[version], true)) fill(version);
        return words_ + version * table_entries;
    }

  private:
    void fill(std::size_t version) {
        std::fill_n(words_ + version * table_entries, table_entries, nothing_found_.value);
    }

    std::uint64_t* words_;
    Address nothing_found_;
    std::array<bool, version_count> is_in_use_{};
};

}  // namespace shadowprof::emu::translator
