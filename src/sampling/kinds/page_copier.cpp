#include "sampling/kinds/page_copier.h"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "base/thread_if_any.h"
#include "proc/own_pages.h"
#include "proc/process_info.h"

namespace shadowprof::sampling {

namespace {

// In traps that take as long.
double price(std::uint64_t faults, std::size_t copies) {
    return static_cast<double>(faults) + static_cast<double>(copies) / tuning::copies_for_a_fault;
}

// Those `among` which lie around a run of own pages that has some of the fresh ones; the longer it
// is, the more, and at least so many. All are in order.
std::vector<Address> neighbours(const std::vector<Address>& own, const std::vector<Address>& fresh,
                                const std::vector<Address>& among, std::uint64_t at_least) {
    std::vector<Address> near;
    auto next_fresh = fresh.begin();
    auto next = among.begin();
    for (auto begin = own.begin(); begin != own.end() && next_fresh != fresh.end();) {
        auto end = begin + 1;
        while (end != own.end() && *end <= *(end - 1) + tuning::widest_gap_in_run) ++end;
        const auto first = *begin, last = *(end - 1);
        const auto reach = page_size * std::clamp(static_cast<std::uint64_t>(end - begin), at_least,
                                                  tuning::most_neighbours);
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

PageCopier::PageCopier(Plan plan) : plan_(plan) {
    if (plan.meanwhile) looks_after_ = thread_if_any([this] { look_after_living(); });
}

PageCopier::~PageCopier() {
    if (!looks_after_.joinable()) return;
    {
        const std::lock_guard lock{mutex_};
        closed_ = true;
    }
    changed_.notify_one();
    looks_after_.join();
}

// What runs in the program's place has precedence over this as over replicas.
void PageCopier::look_after_living() {
    const sched_param lowest{};
    sched_setscheduler(0, SCHED_IDLE, &lowest);
    std::unique_lock lock{mutex_};
    while (!closed_) {
        if (living_.empty()) {
            changed_.wait(lock);
            continue;
        }
        try {
            for (auto* const replica : living_) replica->copy_neighbours();
        } catch (const std::bad_alloc&) {
            return;  // it only saves time
        }
        changed_.wait_for(lock, tuning::between_looks_at_pages);
    }
}

void PageCopier::learn_from_teacher(double paid, Pages pages) {
    const bool useful = pages.size() <= tuning::most_copied_ahead &&
                        price(0, pages.size()) <= tuning::worth_copying * paid;
    const std::lock_guard lock{mutex_};
    paid_without_ = paid;
    pages_ = std::make_shared<Pages>(useful ? std::move(pages) : Pages{});
    between_teachers_ = std::min(2 * between_teachers_, tuning::most_between_teachers);
}

void PageCopier::learn_from_other(double paid) {
    const std::lock_guard lock{mutex_};
    if (paid <= tuning::worth_copying * paid_without_) return;
    pages_ = std::make_shared<Pages>();
    between_teachers_ = tuning::fewest_between_teachers;
    until_teaching_ = std::min(until_teaching_, tuning::fewest_between_teachers - 1);
}

PageCopier::OfReplica::OfReplica(PageCopier& all, pid_t replica,
                                 std::shared_ptr<const proc::Maps> maps)
    : all_(all), replica_(replica), maps_(std::move(maps)) {
    if (all.plan_.ahead) copy_ahead();
    if (!all.looks_after_.joinable()) return;
    between_looks_ =
        std::max(tuning::fewest_faults_between_looks,
                 proc::bytes_copied_on_write(*maps_) / page_size / tuning::pages_for_a_fault);
    const auto faults = proc::minor_faults(replica);
    if (!faults) return;
    next_look_ = *faults + std::max(teaches_ ? all.plan_.faults_that_teach : 0, between_looks_);
    const std::lock_guard lock{all.mutex_};
    all.living_.push_back(this);
    all.changed_.notify_one();
}

void PageCopier::OfReplica::copy_ahead() {
    std::shared_ptr<const Pages> pages;
    {
        const std::lock_guard lock{all_.mutex_};
        teaches_ = all_.until_teaching_ == 0;
        all_.until_teaching_ = teaches_ ? all_.between_teachers_ - 1 : all_.until_teaching_ - 1;
        pages = all_.pages_;
    }
    if (!teaches_) {
        std::ranges::copy_if(*pages, std::back_inserter(own_), [&](Address page) {
            const auto* const mapping = maps_->mapping_at(page);
            return mapping && proc::is_copied_on_write(*mapping);
        });
        proc::make_own(replica_, own_);
        copied_ahead_ = own_.size();
    }
    faults_before_ = proc::minor_faults(replica_);
}

std::size_t PageCopier::OfReplica::end() {
    const std::lock_guard lock{all_.mutex_};
    all_.living_.remove(this);
    return copied_meanwhile_;
}

void PageCopier::OfReplica::learn() {
    const auto after = faults_before_ ? proc::minor_faults(replica_) : std::nullopt;
    if (!after) return;
    const auto faults = *after - *faults_before_;
    const auto paid = price(faults, copied_ahead_ + end());
    if (!teaches_)
        all_.learn_from_other(paid);
    else
        all_.learn_from_teacher(paid, faults < tuning::faults_worth_learning
                                          ? Pages{}
                                          : proc::pages_in_memory(replica_, *maps_).own);
}

void PageCopier::OfReplica::copy_neighbours() {
    const auto faults = proc::minor_faults(replica_);
    if (!faults || *faults < next_look_ || copied_meanwhile_ == tuning::most_copied_meanwhile)
        return;
    next_look_ = *faults + between_looks_;
    auto pages = proc::pages_in_memory(replica_, *maps_);
    std::vector<Address> fresh;
    std::ranges::set_difference(pages.own, own_, std::back_inserter(fresh));
    auto near = neighbours(pages.own, fresh, pages.shared, reach_);
    // A merge goes through memory in runs that are no longer at its end than at its beginning.
    reach_ = std::min(2 * reach_, tuning::most_neighbours);
    near.resize(std::min(near.size(), tuning::most_copied_meanwhile - copied_meanwhile_));
    copied_meanwhile_ += near.size();
    proc::make_own(replica_, near);
    own_.clear();
    std::ranges::merge(pages.own, near, std::back_inserter(own_));
}

}  // namespace shadowprof::sampling
