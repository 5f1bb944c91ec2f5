#include "ptrace/own_pages.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace shadowprof::ptrace {

namespace {

constexpr std::uint64_t page_size = 4096;

}  // namespace

void append_own_pages(pid_t pid, AddressRange range, std::vector<Address>& pages) {
    const int file = open(fmt::format("/proc/{}/pagemap", pid).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    constexpr std::uint64_t is_present = 1ull << 63, is_exclusive = 1ull << 56,
                            both = is_present | is_exclusive;
    std::array<std::uint64_t, 4096> entries;
    for (auto at = range.begin; at < range.end;) {
        const auto wanted = std::min<std::uint64_t>(entries.size(), (range.end - at) / page_size);
        const auto got = pread(file, entries.data(), wanted * sizeof entries[0],
                               static_cast<off_t>(at.value / page_size * sizeof entries[0]));
        if (got <= 0) break;
        const auto count = static_cast<std::uint64_t>(got) / sizeof entries[0];
        for (std::uint64_t n = 0; n < count; ++n)
            if ((entries[n] & both) == both) pages.push_back(at + n * page_size);
        at = at + count * page_size;
    }
    close(file);
}

void make_own(pid_t pid, std::span<const Address> pages) {
    constexpr std::size_t at_a_time = 1024;
    std::array<std::byte, at_a_time> bytes;
    std::array<iovec, at_a_time> ours, theirs;
    while (!pages.empty()) {
        const auto some = pages.first(std::min(pages.size(), at_a_time));
        pages = pages.subspan(some.size());
        for (std::size_t n = 0; n < some.size(); ++n) {
            ours[n] = {&bytes[n], 1};
            theirs[n] = {reinterpret_cast<void*>(some[n].value), 1};
        }
        const auto read =
            process_vm_readv(pid, ours.data(), some.size(), theirs.data(), some.size(), 0);
        if (read <= 0) continue;
        const auto known = static_cast<unsigned long>(read);
        process_vm_writev(pid, ours.data(), known, theirs.data(), known, 0);
    }
}

}  // namespace shadowprof::ptrace
