#include "proc/memory.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>

#include "base/page.h"
#include "proc/page_map.h"

namespace shadowprof::proc {
namespace {

iovec remote(Address at, std::size_t size) {
    return {reinterpret_cast<void*>(at.value), size};
}

}  // namespace

std::size_t Memory::read(Address from, std::span<std::byte> into) const {
    std::size_t done = 0;
    // The kernel may stop short of a fault, and limits how much one call moves.
    while (done < into.size()) {
        const iovec local{into.data() + done, into.size() - done};
        const iovec there = remote(from + done, into.size() - done);
        const auto got = process_vm_readv(pid_, &local, 1, &there, 1, 0);
        if (got <= 0) break;
        done += static_cast<std::size_t>(got);
    }
    return done;
}

std::size_t Memory::read(std::span<const Part> parts) const {
    constexpr std::size_t most_at_once = 64;
    std::array<iovec, most_at_once> local{}, there{};
    for (std::size_t done = 0; done < parts.size();) {
        const auto some = parts.subspan(done, std::min(most_at_once, parts.size() - done));
        for (std::size_t n = 0; n < some.size(); ++n) {
            local[n] = {some[n].into.data(), some[n].into.size()};
            there[n] = remote(some[n].from, some[n].into.size());
        }
        const auto got =
            process_vm_readv(pid_, local.data(), some.size(), there.data(), some.size(), 0);
        auto left = static_cast<std::size_t>(std::max<ssize_t>(got, 0));
        for (const auto& part : some) {
            if (left < part.into.size()) return done;
            left -= part.into.size();
            ++done;
        }
    }
    return parts.size();
}

std::size_t Memory::read_what_is_there(Address from, std::span<std::byte> into) const {
    const auto end = from + into.size();
    auto missing = end;
    PageMap{pid_}.for_each({page_begin(from), {round_up_to_page(end.value)}},
                           [&](Address page, PageMap::Entry entry) {
                               if (!entry.exists()) missing = std::min(missing, page);
                           });
    if (missing < end) into = into.first(missing > from ? missing - from : 0);
    return read(from, into);
}

void Memory::bring_in(AddressRange pages) const {
    std::array<iovec, 64> there;
    std::array<std::byte, there.size()> bytes;
    for (auto at = pages.begin; at < pages.end;) {
        std::size_t count = 0;
        for (; count < there.size() && at < pages.end; at = at + page_size)
            there[count++] = remote(at, 1);
        const iovec local{bytes.data(), count};
        if (process_vm_readv(pid_, &local, 1, there.data(), count, 0) <= 0) return;
    }
}

bool Memory::write(Address to, std::span<const std::byte> bytes) const {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const iovec local{const_cast<std::byte*>(bytes.data()) + done, bytes.size() - done};
        const iovec there = remote(to + done, bytes.size() - done);
        const auto put = process_vm_writev(pid_, &local, 1, &there, 1, 0);
        if (put <= 0) return false;
        done += static_cast<std::size_t>(put);
    }
    return true;
}

}  // namespace shadowprof::proc
