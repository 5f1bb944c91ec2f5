#include "shadow/pages_ahead.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "ptrace/process_info.h"

namespace shadowprof::shadow {

namespace {

constexpr std::uint64_t page = 4096;
// One replica of so many tells anew.
constexpr unsigned between_teachers = 8;
// With fewer faults there is nothing to gain.
constexpr std::uint64_t worth_learning = 128;
// Of memory: what is looked at, and what is copied at most.
constexpr std::uint64_t most_looked_at = (1ull << 30) / page, most_copied = (128ull << 20) / page;
// A copy made in vain is so much cheaper than a trap.
constexpr std::uint64_t copies_for_a_fault = 8;

// Of which it has copies of its own.
bool is_copied(const ptrace::Mapping& mapping) {
    return mapping.writable && mapping.readable && !mapping.shared;
}

// The pages that nobody else has; nothing if there is too much to look at.
std::vector<Address> own_pages(pid_t process, const ptrace::Maps& maps) {
    std::uint64_t to_look_at = 0;
    for (const auto& mapping : maps.mappings())
        if (is_copied(mapping)) to_look_at += mapping.range.size() / page;
    if (to_look_at > most_looked_at) return {};
    const int file = open(fmt::format("/proc/{}/pagemap", process).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    constexpr std::uint64_t is_present = 1ull << 63, is_exclusive = 1ull << 56,
                            both = is_present | is_exclusive;
    std::vector<Address> own;
    std::array<std::uint64_t, 4096> entries;
    for (const auto& mapping : maps.mappings()) {
        if (!is_copied(mapping)) continue;
        for (auto at = mapping.range.begin; at < mapping.range.end;) {
            const auto wanted =
                std::min<std::uint64_t>(entries.size(), (mapping.range.end - at) / page);
            const auto got = pread(file, entries.data(), wanted * sizeof entries[0],
                                   static_cast<off_t>(at.value / page * sizeof entries[0]));
            if (got <= 0) break;
            const auto count = static_cast<std::uint64_t>(got) / sizeof entries[0];
            for (std::uint64_t n = 0; n < count; ++n)
                if ((entries[n] & both) == both) own.push_back(at + n * page);
            at = at + count * page;
        }
    }
    close(file);
    return own;
}

// By writing what is there.
void copy(pid_t process, const std::vector<Address>& pages, const ptrace::Maps& maps) {
    constexpr std::size_t at_a_time = 1024;
    std::array<std::byte, at_a_time> bytes;
    std::array<iovec, at_a_time> ours, theirs;
    for (auto next = pages.begin(); next != pages.end();) {
        std::size_t count = 0;
        for (; next != pages.end() && count < at_a_time; ++next) {
            const auto* const mapping = maps.mapping_at(*next);
            if (!mapping || !is_copied(*mapping)) continue;
            ours[count] = {&bytes[count], 1};
            theirs[count++] = {reinterpret_cast<void*>(next->value), 1};
        }
        const auto read = process_vm_readv(process, ours.data(), count, theirs.data(), count, 0);
        if (read <= 0) continue;
        const auto known = static_cast<unsigned long>(read);
        process_vm_writev(process, ours.data(), known, theirs.data(), known, 0);
    }
}

}  // namespace

PagesAhead::Beginning PagesAhead::copy_for(pid_t replica, const ptrace::Maps& maps) {
    Beginning beginning;
    if (!copies_are_dear_) return beginning;
    std::shared_ptr<const Pages> pages;
    {
        const std::lock_guard lock{mutex_};
        beginning.teaches = until_teaching_ == 0;
        until_teaching_ = beginning.teaches ? between_teachers - 1 : until_teaching_ - 1;
        pages = pages_;
    }
    if (!beginning.teaches) copy(replica, *pages, maps);
    beginning.faults = ptrace::minor_faults(replica);
    return beginning;
}

void PagesAhead::learn(const Beginning& beginning, pid_t replica, const ptrace::Maps& maps) {
    const auto before = beginning.faults,
               after = before ? ptrace::minor_faults(replica) : std::nullopt;
    if (!after) return;
    const auto faults = *after - *before;
    if (beginning.teaches) {
        auto pages = faults < worth_learning ? Pages{} : own_pages(replica, maps);
        const bool useful =
            pages.size() <= most_copied && pages.size() <= faults * copies_for_a_fault;
        const std::lock_guard lock{mutex_};
        faults_without_ = faults;
        pages_ = std::make_shared<Pages>(useful ? std::move(pages) : Pages{});
        return;
    }
    const std::lock_guard lock{mutex_};
    const bool helped = faults <= faults_without_ / 2;
    if (!helped) pages_ = std::make_shared<Pages>();
}

}  // namespace shadowprof::shadow
