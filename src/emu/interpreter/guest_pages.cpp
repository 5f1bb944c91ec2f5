#include "emu/interpreter/guest_pages.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "proc/open_files.h"

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

void GuestPages::use(proc::Memory memory, std::shared_ptr<const proc::Maps> maps) {
    if (!page_map_ || memory.pid() != memory_.pid()) page_map_.emplace(memory.pid());
    memory_ = memory;
    maps_ = std::move(maps);
    serves_page_faults_.reset();
}

// A page that is not there may be served by the guest itself, in a thread that is stopped or comes
// to a stop that only we can end: we would wait for each other for ever.
bool GuestPages::may_have_to_wait_for(Address page, const proc::Mapping& mapping) {
    const bool can_be_served = !mapping.is_file() || mapping.writable || mapping.shared;
    if (!can_be_served || page_map_->at(page).exists()) return false;
    if (!serves_page_faults_) serves_page_faults_ = proc::may_serve_page_faults(memory_.pid());
    return *serves_page_faults_;
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
    if (may_have_to_wait_for(page, *mapping)) return {};
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
