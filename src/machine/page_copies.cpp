#include "machine/page_copies.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "machine/birth_prices.h"

namespace shadowprof::machine {

Seconds PageCopies::price_so_far(std::size_t alive) {
    const auto now = Clock::now();
    const auto faults = proc::minor_faults(target_);
    if (!faults) return Seconds{0};
    const auto before = std::exchange(faults_, faults);
    const Seconds passed = now - std::exchange(at_, now);
    const auto were_alive = std::exchange(alive_, alive);
    if (!before || passed <= Seconds{0}) return Seconds{0};
    const auto count = static_cast<double>(*faults - *before);
    // A page that it has never touched before is its own, too: a copy is not one more.
    const auto pages_now = pages_of(target_);
    const auto grown =
        std::clamp(pages_now - std::exchange(anonymous_pages_, pages_now), 0.0, count);
    const auto own = grown + own_rate_ * passed.count();
    const auto extra = std::clamp(count - own, 0.0, protected_);
    protected_ -= extra;
    extra_ += extra;
    auto price = extra * birth_prices().of_aftermath;
    if (were_alive > 0) {
        Seconds trying{};
        const auto of_fresh_page = fresh_pages_.surcharge(target_, trying);
        price = extra * (birth_prices().of_copy + of_fresh_page) + trying;
    }
    if (alive > were_alive) {
        protected_ = pages_now;
        most_protected_ = std::max(most_protected_, protected_);
        price += birth_prices().of_fork + birth_prices().of_one_between +
                 price_of_page_tables(protected_);
    }
    // The last second counts most. While pages are protected it is seen to fall, not to rise.
    known_for_ = std::min(known_for_ + passed, Seconds{1});
    const auto weight = std::min(1.0, passed / known_for_);
    own_rate_ += weight * ((count - extra - grown) / passed.count() - own_rate_);
    return price;
}

Seconds PageCopies::risk_of_birth() const {
    constexpr double written = 0.5;
    const auto unknown = std::max(0.0, pages_of(target_) - most_protected_);
    return price_of_page_tables(unknown) + written * unknown * birth_prices().of_copy;
}

}  // namespace shadowprof::machine
