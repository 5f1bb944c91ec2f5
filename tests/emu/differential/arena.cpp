#include "arena.h"

#include <sys/mman.h>

#include <cstring>
#include <stdexcept>

#include "native.h"

namespace shadowprof::differential {

Arena::Arena() {
    auto* pages_at = ::mmap(data(), size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (pages_at == MAP_FAILED) throw std::runtime_error("mmap");
    std::memset(data(), 0x5a, size);
    protect_read_only_page(true);
}

Arena::~Arena() {
    ::munmap(data(), size);
}

void Arena::protect_read_only_page(bool protect) {
    ::mprotect(data() + writable_pages * page_size, page_size,
               protect ? PROT_READ : PROT_READ | PROT_WRITE);
}

emu::PageSource::Fetched Arena::fetch(Address page, std::byte* into, std::size_t first,
                                      std::size_t last) {
    const bool is_code = NativeCode::begin <= page && page < NativeCode::begin + NativeCode::size;
    if (!is_code && (page < begin || page >= begin + size)) return {};
    std::memcpy(into + first, reinterpret_cast<const std::byte*>(page.value) + first, last - first);
    return {.readable = true, .writable = !is_code && page < begin + writable_pages * page_size};
}

void Arena::randomise(Random& random) {
    for (std::size_t at = 0; at < writable_pages * page_size; at += 8) {
        auto value = random();
        if ((value & 0x700) == 0)
            value = static_cast<std::uint64_t>(static_cast<std::int8_t>(value));
        std::memcpy(data() + at, &value, 8);
    }
}

void Arena::put(Address at, std::span<const std::byte> bytes) {
    constexpr auto end = begin + writable_pages * page_size;
    if (begin <= at && at < end && bytes.size() <= end - at) {
        std::memcpy(data() + (at - begin), bytes.data(), bytes.size());
        return;
    }
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        const auto to = at + n;
        if (begin <= to && to < end) data()[to - begin] = bytes[n];
    }
}

void Arena::restore(const std::vector<std::byte>& contents) {
    std::memcpy(data(), contents.data(), writable_pages * page_size);
}

}  // namespace shadowprof::differential
