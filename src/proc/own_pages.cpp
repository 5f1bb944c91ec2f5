#include "proc/own_pages.h"

#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdint>

#include "proc/page_map.h"
#include "proc/tuning.h"

namespace shadowprof::proc {

bool is_copied_on_write(const Mapping& mapping) {
    return mapping.writable && mapping.readable && !mapping.shared;
}

std::uint64_t bytes_copied_on_write(const Maps& maps) {
    std::uint64_t bytes = 0;
    for (const auto& mapping : maps.mappings())
        if (is_copied_on_write(mapping)) bytes += mapping.range.size();
    return bytes;
}

PagesInMemory pages_in_memory(pid_t pid, const Maps& maps) {
    PagesInMemory pages;
    if (bytes_copied_on_write(maps) > tuning::most_memory_looked_at) return pages;
    const PageMap map{pid};
    for (const auto& mapping : maps.mappings()) {
        if (!is_copied_on_write(mapping)) continue;
        map.for_each(mapping.range, [&](Address page, PageMap::Entry entry) {
            if (entry.is_in_memory())
                (entry.is_exclusive() ? pages.own : pages.shared).push_back(page);
        });
    }
    return pages;
}

// The kernel makes all pages of a piece the process's own before it reads what is to be written
// there; and that is unreadable. So nothing is written: it could overwrite what the process has
// just stored.
void make_own(pid_t pid, std::span<const Address> pages) {
    constexpr auto most_pages = tuning::most_pages_at_once;
    static void* const unreadable =
        mmap(nullptr, most_pages * page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (unreadable == MAP_FAILED) return;
    while (!pages.empty()) {
        std::size_t count = 1;
        while (count < std::min(pages.size(), most_pages) &&
               pages[count] == pages[count - 1] + page_size)
            ++count;
        const iovec nothing{unreadable, count * page_size};
        const iovec piece{reinterpret_cast<void*>(pages.front().value), count * page_size};
        process_vm_writev(pid, &nothing, 1, &piece, 1, 0);
        pages = pages.subspan(count);
    }
}

}  // namespace shadowprof::proc
