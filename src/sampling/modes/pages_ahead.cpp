#include "sampling/modes/pages_ahead.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "proc/own_pages.h"
#include "proc/process_info.h"

namespace shadowprof::sampling {

namespace {

// One replica of so many tells anew at least.
constexpr unsigned most_between_teachers = 64;
// With fewer faults there is nothing to gain.
constexpr std::uint64_t worth_learning = 128;
constexpr std::uint64_t most_copied_ahead = 1u << 15;  // pages
// A copy made in vain is so much cheaper than a trap.
constexpr std::uint64_t copies_for_a_fault = 8;

// In traps that take as long.
double price(std::uint64_t faults, std::size_t copies) {
    return static_cast<double>(faults) + static_cast<double>(copies) / copies_for_a_fault;
}
// There is no point in less.
constexpr double worth_copying = 0.75;

}  // namespace

PagesAhead::Beginning PagesAhead::copy_for(pid_t replica, const proc::Maps& maps) {
    Beginning beginning;
    if (!copies_are_dear_) return beginning;
    std::shared_ptr<const Pages> pages;
    {
        const std::lock_guard lock{mutex_};
        beginning.teaches = until_teaching_ == 0;
        until_teaching_ = beginning.teaches ? between_teachers_ - 1 : until_teaching_ - 1;
        pages = pages_;
    }
    if (!beginning.teaches) {
        std::ranges::copy_if(*pages, std::back_inserter(beginning.copied), [&](Address page) {
            const auto* const mapping = maps.mapping_at(page);
            return mapping && proc::is_copied_on_write(*mapping);
        });
        proc::make_own(replica, beginning.copied);
    }
    beginning.faults = proc::minor_faults(replica);
    return beginning;
}

void PagesAhead::learn(const Beginning& beginning, pid_t replica, const proc::Maps& maps,
                       std::size_t copied_meanwhile) {
    const auto before = beginning.faults,
               after = before ? proc::minor_faults(replica) : std::nullopt;
    if (!after) return;
    const auto faults = *after - *before;
    const auto paid = price(faults, beginning.copied.size() + copied_meanwhile);
    if (beginning.teaches) {
        auto pages = faults < worth_learning ? Pages{} : proc::pages_in_memory(replica, maps).own;
        const bool useful =
            pages.size() <= most_copied_ahead && price(0, pages.size()) <= worth_copying * paid;
        const std::lock_guard lock{mutex_};
        price_without_ = paid;
        pages_ = std::make_shared<Pages>(useful ? std::move(pages) : Pages{});
        between_teachers_ = std::min(2 * between_teachers_, most_between_teachers);
        return;
    }
    const std::lock_guard lock{mutex_};
    if (paid <= worth_copying * price_without_) return;
    pages_ = std::make_shared<Pages>();
    between_teachers_ = fewest_between_teachers;
    until_teaching_ = std::min(until_teaching_, fewest_between_teachers - 1);
}

}  // namespace shadowprof::sampling
