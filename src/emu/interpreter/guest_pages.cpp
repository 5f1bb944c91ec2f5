#include "emu/interpreter/guest_pages.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

namespace shadowprof::emu {

namespace {

bool is_clock_page(const proc::Mapping& mapping) {
    return mapping.path.starts_with("[vvar");
}

// Reads our own memory. Some pages of [vvar] may not exist; a pipe then refuses, where a load would
// raise a signal.
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

GuestPages::GuestPages(bool shares_our_clocks) {
    if (!shares_our_clocks) return;
    if (const auto ours = proc::Maps::of(getpid()))
        for (const auto& mapping : ours->mappings())
            if (is_clock_page(mapping)) our_clock_pages_.push_back(mapping);
}

PageSource::Fetched GuestPages::fetch(Address page, std::byte* into, std::size_t begin,
                                      std::size_t end) {
    const auto* mapping = maps_->mapping_at(page);
    if (!mapping || !mapping->readable) return {};
    // The page is copied at once, because its parts belong together.
    if (is_clock_page(*mapping)) {
        const bool copied = fetch_clock_page(*mapping, page, into);
        return {.readable = copied, .writable = false, .is_all = copied};
    }
    if (memory_.read(page + begin, {into + begin, end - begin}) != end - begin) return {};
    return {.readable = true, .writable = mapping->writable};
}

// The kernel updates the page some hundred times a second, in well under a microsecond. Two equal
// copies were not taken in the middle of an update.
bool GuestPages::fetch_clock_page(const proc::Mapping& mapping, Address at, std::byte* into) const {
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
