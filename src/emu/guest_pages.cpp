#include "emu/guest_pages.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

namespace shadowprof::emu {

namespace {

bool is_clock_page(const ptrace::Mapping& mapping) {
    return mapping.path.starts_with("[vvar");
}

// Of our own memory, of which some pages of [vvar] may not be there: a pipe refuses where a load
// would raise a signal.
bool copy_if_accessible(Address from, std::byte* into) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
    const bool copied =
        write(ends[1], reinterpret_cast<const void*>(from.value), page_size) == page_size &&
        read(ends[0], into, page_size) == page_size;
    close(ends[0]);
    close(ends[1]);
    return copied;
}

}  // namespace

GuestPages::GuestPages(ptrace::Memory memory, bool shares_our_clocks) : memory_(memory) {
    if (!shares_our_clocks) return;
    if (const auto ours = ptrace::Maps::of(getpid()))
        for (const auto& mapping : ours->mappings())
            if (is_clock_page(mapping)) our_clock_pages_.push_back(mapping);
}

void GuestPages::fetch(Address first, std::span<Page> pages) {
    std::size_t fetched = 0;
    while (fetched < pages.size()) {
        const auto at = first + fetched * page_size;
        const auto* mapping = maps_->mapping_at(at);
        if (!mapping || !mapping->readable) break;
        if (is_clock_page(*mapping)) {
            if (!fetch_clock_page(*mapping, at, pages[fetched].into)) break;
            pages[fetched++].readable = true;
            continue;
        }
        // As many as lie together in this mapping and in our memory.
        std::size_t run = 1;
        while (fetched + run < pages.size() && mapping->range.contains(at + run * page_size) &&
               pages[fetched + run].into == pages[fetched].into + run * page_size)
            ++run;
        const auto read = memory_.read(at, {pages[fetched].into, run * page_size}) / page_size;
        for (std::size_t i = 0; i < read; ++i) {
            pages[fetched + i].readable = true;
            pages[fetched + i].writable = mapping->writable;
        }
        fetched += read;
        if (read < run) break;
    }
    for (auto& page : pages.subspan(fetched)) page.into = nullptr;
}

// The kernel updates the page some hundred times a second, in well under a microsecond: two equal
// copies were not taken in the middle of it.
bool GuestPages::fetch_clock_page(const ptrace::Mapping& mapping, Address at,
                                  std::byte* into) const {
    for (const auto& ours : our_clock_pages_) {
        if (ours.path != mapping.path || ours.range.size() != mapping.range.size()) continue;
        const auto source = ours.range.begin + (at - mapping.range.begin);
        alignas(8) std::byte again[page_size];
        for (int attempt = 0; attempt < 8; ++attempt) {
            if (!copy_if_accessible(source, into) || !copy_if_accessible(source, again))
                return false;
            if (std::memcmp(into, again, page_size) == 0) return true;
        }
    }
    return false;
}

}  // namespace shadowprof::emu
