#include "emu/interpreter/memory_view.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <new>

#include "base/x86.h"

namespace shadowprof::emu {

namespace {

constexpr std::size_t first_table_size = 256;
constexpr auto all_pieces = pieces_of(0, page_size);

// One counter for all views, so that no two states of views are ever taken for one.
std::uint64_t next_epoch() {
    static std::atomic<std::uint64_t> epoch{0};
    return ++epoch;
}

// Stands for the contents of pages for which there was no room. Nobody reads it.
alignas(page_size) std::byte no_contents[page_size];

}  // namespace

MemoryView::MemoryView(PageSource& source)
    : source_(source), places_(first_table_size), epoch_(next_epoch()) {
    table_ = {places_.data(), places_.size() - 1};
}

MemoryView::~MemoryView() {
    for (auto* slab : slabs_) ::munmap(slab, pages_per_slab * page_size);
}

ViewPage& MemoryView::page(Address at, std::size_t size) {
    auto* known = find_page(table_, at.value);
    if (!known) known = insert(page_begin(at));
    const unsigned missing = pieces_of(at.value & ~page_mask, size) & ~known->pieces;
    if (missing) fetch(*known, missing);
    return *known;
}

// Neighbours together.
void MemoryView::fetch(ViewPage& page, unsigned missing) {
    while (missing & ~page.pieces) {
        missing &= ~page.pieces;
        const auto first = static_cast<unsigned>(std::countr_zero(missing));
        const auto count = static_cast<unsigned>(std::countr_one(missing >> first));
        const auto fetched = source_.fetch({page.address}, page.data, first * piece_size,
                                           (first + count) * piece_size);
        page.readable = fetched.readable;
        page.writable = fetched.writable;
        const bool is_accessible = fetched.readable || fetched.writable;
        page.pieces |= is_accessible && !fetched.is_all
                           ? pieces_of(first * piece_size, count * piece_size)
                           : all_pieces;
    }
}

ViewPage* MemoryView::insert(Address at) {
    if (2 * (used_ + 1) > places_.size()) grow();
    auto place = hash_of_page(at.value);
    while (places_[place & table_.mask].data) ++place;
    auto& page = places_[place & table_.mask];
    page = {};
    page.address = at.value;
    exhausted_ = exhausted_ || pages_taken_ >= limit_;
    if (exhausted_) {
        page.data = no_contents;
        page.pieces = all_pieces;
    } else {
        page.data = new_page();
    }
    ++used_;
    return &page;
}

void MemoryView::grow() {
    std::vector<ViewPage> bigger(places_.size() * 2);
    const auto mask = bigger.size() - 1;
    for (const auto& page : places_) {
        if (!page.data) continue;
        auto place = hash_of_page(page.address);
        while (bigger[place & mask].data) ++place;
        bigger[place & mask] = page;
    }
    places_ = std::move(bigger);
    table_ = {places_.data(), mask};
}

std::byte* MemoryView::new_page() {
    if (pages_taken_ == slabs_.size() * pages_per_slab) {
        auto* slab = ::mmap(nullptr, pages_per_slab * page_size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (slab == MAP_FAILED) throw std::bad_alloc();
        slabs_.push_back(static_cast<std::byte*>(slab));
    }
    const auto n = pages_taken_++;
    return slabs_[n / pages_per_slab] + (n % pages_per_slab) * page_size;
}

void MemoryView::drop() {
    // A large table is given up, so that one large burst does not slow down all later ones.
    if (used_ * 8 < places_.size() && places_.size() > first_table_size) {
        places_ = std::vector<ViewPage>(first_table_size);
    } else {
        std::fill(places_.begin(), places_.end(), ViewPage{});
    }
    table_ = {places_.data(), places_.size() - 1};
    used_ = 0;
    pages_taken_ = 0;
    limit_ = most_pages;
    code_changed_ = exhausted_ = false;
    epoch_ = next_epoch();
}

std::size_t MemoryView::read(Address from, std::span<std::byte> into) {
    std::size_t done = 0;
    while (done < into.size()) {
        const auto at = from + done;
        const auto offset = at.value & ~page_mask;
        const auto size = std::min<std::size_t>(into.size() - done, page_size - offset);
        const auto& source = page(at, size);
        if (!source.readable) break;
        std::memcpy(into.data() + done, source.data + offset, size);
        done += size;
    }
    return done;
}

std::size_t MemoryView::write(Address to, std::span<const std::byte> bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const auto at = to + done;
        const auto offset = at.value & ~page_mask;
        const auto size = std::min<std::size_t>(bytes.size() - done, page_size - offset);
        auto& target = page(at, size);
        if (!target.writable) break;
        std::memcpy(target.data + offset, bytes.data() + done, size);
        for (auto line = offset / cache_line; line <= (offset + size - 1) / cache_line; ++line)
            if (target.code_lines >> line & 1) target.code_changed = code_changed_ = true;
        done += size;
    }
    return done;
}

void MemoryView::mark_code(AddressRange code) {
    for (auto line = code.begin.value / cache_line; line <= (code.end.value - 1) / cache_line;
         ++line)
        page({line * cache_line}).code_lines |= std::uint64_t{1} << (line % 64);
}

std::vector<Address> MemoryView::take_changed_code() {
    std::vector<Address> changed;
    for (auto& page : places_) {
        if (!page.data || !page.code_changed) continue;
        changed.push_back({page.address});
        page.code_changed = false;
        page.code_lines = 0;
    }
    code_changed_ = false;
    return changed;
}

std::optional<Address> MemoryView::guest_address_of(const std::byte* copy) const {
    const auto at = reinterpret_cast<std::uint64_t>(copy);
    for (const auto& page : places_) {
        const auto data = reinterpret_cast<std::uint64_t>(page.data);
        if (page.data && page.data != no_contents && data <= at && at < data + page_size)
            return Address{page.address + (at - data)};
    }
    return {};
}

}  // namespace shadowprof::emu
