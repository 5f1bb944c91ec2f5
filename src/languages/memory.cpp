#include "languages/memory.h"

#include <algorithm>

namespace shadowprof::languages {

bool PagesOnce::read(Address from, std::span<std::byte> into) {
    if (from.value > ~std::uint64_t{0} - into.size()) return false;
    for (std::size_t done = 0; done < into.size();) {
        const auto at = from + done;
        const auto* const page = page_at(page_begin(at));
        if (!page) return false;
        const auto begin = at - page_begin(at);
        const auto count = std::min<std::size_t>(page_size - begin, into.size() - done);
        std::copy_n(page->begin() + static_cast<std::ptrdiff_t>(begin), count,
                    into.begin() + static_cast<std::ptrdiff_t>(done));
        done += count;
    }
    return true;
}

const PagesOnce::Page* PagesOnce::page_at(Address begin) {
    const auto known =
        std::ranges::find(pages_, begin, [](const auto& page) { return page.first; });
    if (known != pages_.end()) return known->second.get();
    if (pages_.size() == most_pages) return nullptr;
    auto fresh = std::make_unique<Page>();
    if (!memory_.read(begin, *fresh)) return nullptr;
    return pages_.emplace_back(begin, std::move(fresh)).second.get();
}

}  // namespace shadowprof::languages
