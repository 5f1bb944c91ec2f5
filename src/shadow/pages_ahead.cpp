#include "shadow/pages_ahead.h"

#include <utility>

#include "ptrace/own_pages.h"
#include "ptrace/process_info.h"

namespace shadowprof::shadow {

namespace {

// One replica of so many tells anew.
constexpr unsigned between_teachers = 8;
// With fewer faults there is nothing to gain.
constexpr std::uint64_t worth_learning = 128;
// What is looked at, in bytes, and what is copied, in pages, at most.
constexpr std::uint64_t most_looked_at = 1ull << 30, most_copied = 1u << 15;
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
        if (is_copied(mapping)) to_look_at += mapping.range.size();
    std::vector<Address> own;
    if (to_look_at > most_looked_at) return own;
    for (const auto& mapping : maps.mappings())
        if (is_copied(mapping)) ptrace::append_own_pages(process, mapping.range, own);
    return own;
}

void copy(pid_t process, std::vector<Address> pages, const ptrace::Maps& maps) {
    std::erase_if(pages, [&](Address page) {
        const auto* const mapping = maps.mapping_at(page);
        return !mapping || !is_copied(*mapping);
    });
    ptrace::make_own(process, pages);
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
