#include "sampling/modes/neighbour_pages.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>
#include <utility>

#include "base/thread_if_any.h"
#include "proc/own_pages.h"
#include "proc/process_info.h"

namespace shadowprof::sampling {

namespace {

// A look takes a microsecond for twenty pages, and has to be worth while.
constexpr auto rest = std::chrono::milliseconds{5};
constexpr std::uint64_t fewest_faults = 64, pages_for_a_fault = 128;
constexpr std::size_t most_copied = 1u << 17;  // pages of a replica

constexpr std::uint64_t most_neighbours = 1u << 15;
constexpr std::uint64_t widest_gap = 8 * page_size;  // in a run

// Those `among` which lie around a run of own pages that has some of the fresh ones; the longer it
// is, the more, and at least so many. All are in order.
std::vector<Address> neighbours(const std::vector<Address>& own, const std::vector<Address>& fresh,
                                const std::vector<Address>& among, std::uint64_t at_least) {
    std::vector<Address> near;
    auto next_fresh = fresh.begin();
    auto next = among.begin();
    for (auto begin = own.begin(); begin != own.end() && next_fresh != fresh.end();) {
        auto end = begin + 1;
        while (end != own.end() && *end <= *(end - 1) + widest_gap) ++end;
        const auto first = *begin, last = *(end - 1);
        const auto reach = page_size * std::clamp(static_cast<std::uint64_t>(end - begin), at_least,
                                                  most_neighbours);
        begin = end;
        if (*next_fresh > last) continue;
        next_fresh = std::upper_bound(next_fresh, fresh.end(), last);
        next = std::lower_bound(next, among.end(),
                                Address{first.value - std::min(first.value, reach)});
        while (next != among.end() && *next <= last + reach) near.push_back(*next++);
    }
    return near;
}

}  // namespace

NeighbourPages::NeighbourPages(bool copies_are_dear) {
    if (copies_are_dear) looks_after_ = thread_if_any([this] { look_after(); });
}

NeighbourPages::~NeighbourPages() {
    if (!looks_after_.joinable()) return;
    {
        const std::lock_guard lock{mutex_};
        closed_ = true;
    }
    changed_.notify_one();
    looks_after_.join();
}

// What runs in the program's place has precedence over this as over replicas.
void NeighbourPages::look_after() {
    const sched_param lowest{};
    sched_setscheduler(0, SCHED_IDLE, &lowest);
    std::unique_lock lock{mutex_};
    while (!closed_) {
        if (living_.empty()) {
            changed_.wait(lock);
            continue;
        }
        try {
            for (auto* const replica : living_) replica->look();
        } catch (const std::bad_alloc&) {
            return;  // it only saves time
        }
        changed_.wait_for(lock, rest);
    }
}

NeighbourPages::OfReplica::OfReplica(NeighbourPages& all, pid_t replica,
                                     std::shared_ptr<const proc::Maps> maps, std::uint64_t faults,
                                     std::vector<Address> own)
    : all_(all),
      replica_(replica),
      maps_(std::move(maps)),
      between_looks_(std::max(fewest_faults,
                              proc::bytes_copied_on_write(*maps_) / page_size / pages_for_a_fault)),
      own_(std::move(own)) {
    const auto before = proc::minor_faults(replica);
    if (!all.looks_after_.joinable() || !before) return;
    next_look_ = *before + std::max(faults, between_looks_);
    const std::lock_guard lock{all.mutex_};
    all.living_.push_back(this);
    all.changed_.notify_one();
}

std::size_t NeighbourPages::OfReplica::end() {
    const std::lock_guard lock{all_.mutex_};
    all_.living_.remove(this);
    return copied_;
}

void NeighbourPages::OfReplica::look() {
    const auto faults = proc::minor_faults(replica_);
    if (!faults || *faults < next_look_ || copied_ == most_copied) return;
    next_look_ = *faults + between_looks_;
    auto pages = proc::pages_in_memory(replica_, *maps_);
    std::vector<Address> fresh;
    std::ranges::set_difference(pages.own, own_, std::back_inserter(fresh));
    auto near = neighbours(pages.own, fresh, pages.shared, reach_);
    // A merge goes through memory in runs that are no longer at its end than at its beginning.
    reach_ = std::min(2 * reach_, most_neighbours);
    near.resize(std::min(near.size(), most_copied - copied_));
    copied_ += near.size();
    proc::make_own(replica_, near);
    own_.clear();
    std::ranges::merge(pages.own, near, std::back_inserter(own_));
}

}  // namespace shadowprof::sampling
