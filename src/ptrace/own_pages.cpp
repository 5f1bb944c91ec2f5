#include "ptrace/own_pages.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace shadowprof::ptrace {

namespace {

void append(int pagemap, AddressRange range, PagesInMemory& pages) {
    constexpr std::uint64_t is_present = 1ull << 63, is_exclusive = 1ull << 56;
    std::array<std::uint64_t, 4096> entries;
    for (auto at = range.begin; at < range.end;) {
        const auto wanted = std::min<std::uint64_t>(entries.size(), (range.end - at) / page_size);
        const auto got = pread(pagemap, entries.data(), wanted * sizeof entries[0],
                               static_cast<off_t>(at.value / page_size * sizeof entries[0]));
        if (got <= 0) break;
        const auto count = static_cast<std::uint64_t>(got) / sizeof entries[0];
        for (std::uint64_t n = 0; n < count; ++n)
            if (entries[n] & is_present)
                (entries[n] & is_exclusive ? pages.own : pages.shared)
                    .push_back(at + n * page_size);
        at = at + count * page_size;
    }
}

}  // namespace

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
    constexpr std::uint64_t most_looked_at = 1ull << 30;
    PagesInMemory pages;
    if (bytes_copied_on_write(maps) > most_looked_at) return pages;
    const int pagemap = open(fmt::format("/proc/{}/pagemap", pid).c_str(), O_RDONLY | O_CLOEXEC);
    if (pagemap < 0) return pages;
    for (const auto& mapping : maps.mappings())
        if (is_copied_on_write(mapping)) append(pagemap, mapping.range, pages);
    close(pagemap);
    return pages;
}

// The kernel makes all pages of a piece the process's own before it looks for what is to be written
// there; and that cannot be read. So nothing is written, which might be what the process has just
// overwritten.
void make_own(pid_t pid, std::span<const Address> pages) {
    constexpr std::size_t most_pages = 1024;
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

}  // namespace shadowprof::ptrace
