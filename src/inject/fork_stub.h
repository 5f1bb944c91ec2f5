// The code by which a thread of the target forks a replica, and the memory it does it with. Private
// to the room; fork site.cpp tells the story.
#pragma once

#include <time.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace shadowprof::inject {

// Shared by the profiler, the target and its replicas; the code knows the offsets. Words are
// written by one side only, with plain stores: x86 keeps their order.
struct StubSlot {
    std::uint64_t every_signal = ~std::uint64_t{0};
    timespec patience{};         // of a newborn that nobody takes
    std::uint32_t number = 0;    // of the birth, by the profiler
    std::uint32_t complete = 0;  // the number, by the thread, when nothing is left but to return
    std::uint32_t newborn = 0;   // the number, by the newborn, or by the thread if there is none
    std::int32_t pid = 0;        // the newborn's, as it sees it, or an errno, negative
    std::int32_t between = 0;    // the pid of the one between, until it has ended
    std::uint32_t begun = 0;     // the number, by the one between
    std::int32_t to_reap = 0;    // its pid, by itself

    static constexpr std::size_t head_size = 64;
    static constexpr std::size_t size = 16384;  // the largest signal frame (AMX) takes 12.1 kB
    alignas(64) std::array<std::byte, size - head_size> frame;
};
static_assert(sizeof(StubSlot) == StubSlot::size &&
              offsetof(StubSlot, frame) == StubSlot::head_size);

// Position-independent; begins with a system call's instruction and a trap, for anyone's use.
// A thread that is to fork enters with a slot's address in rbx, and needs no stack.
struct Stub {
    std::span<const std::byte> code;
    std::size_t fork_sibling;     // the newborn's parent is the thread's own
    std::size_t fork_grandchild;  // the newborn is nobody's: its parent has ended
};
Stub stub();

// What it clones with, for those who try whether that is allowed.
struct CloneFlags {
    unsigned long between, newborn;
};
extern const CloneFlags sibling_clone_flags, grandchild_clone_flags;

// Instead of an errno of clone(2): the program adopts orphans, and would have the newborn for a
// child.
extern const std::int32_t adopts_orphans;

}  // namespace shadowprof::inject
