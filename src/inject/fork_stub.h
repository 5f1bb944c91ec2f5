// The code by which a thread of the target forks a replica, and the memory with which it does so.
// Private to the room; fork_site.cpp tells the story.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace shadowprof::inject {

// Shared by the profiler, the target and its replicas; the code knows the offsets. Words are
// written by one side only, with plain stores: x86 keeps their order. The program can write over
// them: a newborn must end by itself whatever they are.
struct StubSlot {
    std::uint32_t number = 0;    // of the fork, by the profiler
    std::uint32_t complete = 0;  // the number, by the thread, when nothing is left but to return
    std::uint32_t newborn = 0;   // the number, by the newborn, or by the thread if there is none
    std::int32_t pid = 0;        // the newborn's, as it sees it, or an errno, negative
    // The pid of the intermediary, by the kernel, until the intermediary has ended.
    std::int32_t intermediary = 0;
    std::uint32_t begun = 0;   // the number, by the intermediary
    std::int32_t to_reap = 0;  // the pid of the intermediary, by itself

    static constexpr std::size_t head_size = 64;
    static constexpr std::size_t size = 16384;  // the largest signal frame (AMX) takes 12.1 kB
    alignas(64) std::array<std::byte, size - head_size> frame;
};
static_assert(sizeof(StubSlot) == StubSlot::size &&
              offsetof(StubSlot, frame) == StubSlot::head_size);

// Position-independent code. It begins with a system call's instruction and a trap, for anyone's
// use. A thread that is to fork enters it with a slot's address in rbx, and needs no stack.
struct Stub {
    std::span<const std::byte> code;
    std::size_t fork_sibling;     // the newborn's parent is the thread's own
    std::size_t fork_grandchild;  // the newborn is an orphan: its parent has ended
};
Stub stub();

// The flags of its clone(2) calls, for trying whether they are allowed.
struct CloneFlags {
    unsigned long intermediary, newborn;
};
extern const CloneFlags sibling_clone_flags, grandchild_clone_flags;

// In a slot's `pid`, instead of an errno of clone(2): the program adopts orphans, and the newborn
// would become its child.
extern const std::int32_t adopts_orphans;

}  // namespace shadowprof::inject
