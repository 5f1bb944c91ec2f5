#include "base/heap.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace shadowprof {

void use_large_pages_for_heap() {
    // A thread's heap has room for 64 MB, which is address space only until it is used.
    constexpr int most_in_heap = 32 << 20, never_trimmed = 64 << 20;
    constexpr std::uintptr_t step = 31 << 20, large_page = 2 << 20;
    mallopt(M_MMAP_THRESHOLD, most_in_heap);
    mallopt(M_TRIM_THRESHOLD, never_trimmed);
    auto* const grown = std::malloc(step);
    if (!grown) return;
    const auto begin = (reinterpret_cast<std::uintptr_t>(grown) + large_page) & ~(large_page - 1);
    const auto end = (reinterpret_cast<std::uintptr_t>(grown) + step) & ~(large_page - 1);
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
    std::free(grown);
}

void have_room_in_heap() {
    constexpr std::size_t size = 4 << 20, page = 4 << 10;
    auto* const room = static_cast<volatile char*>(std::malloc(size));
    if (!room) return;
    for (std::size_t at = 0; at < size; at += page) room[at] = 0;
    std::free(const_cast<char*>(room));
}

}  // namespace shadowprof
