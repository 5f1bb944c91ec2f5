#include "emu/translator/together/sleepers.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <limits>

namespace shadowprof::emu::translator {

namespace {

constexpr double second = 1e9;

double nanoseconds_of(const timespec& time) {
    return static_cast<double>(time.tv_sec) * second + static_cast<double>(time.tv_nsec);
}

}  // namespace

// Nanoseconds from now. The replica has our clocks, or else they are not far apart.
std::optional<double> Sleepers::span_at(Address at, bool is_moment, int clock) const {
    const auto time = memory_.read_as<timespec>(at);
    if (!time) return {};
    timespec now{};
    if (is_moment) clock_gettime(clock, &now);
    return std::max(0.0, nanoseconds_of(*time) - nanoseconds_of(now));
}

std::size_t Sleepers::wake(Address at, std::uint32_t most, std::uint32_t bits, Outcome& outcome) {
    std::size_t woken = 0;
    std::erase_if(asleep_, [&](const Sleeper& sleeper) {
        if (woken >= most || sleeper.at != at || (sleeper.bits & bits) == 0) return false;
        outcome.woken.push_back(sleeper.thread);
        ++woken;
        return true;
    });
    return woken;
}

std::vector<std::size_t> Sleepers::wake_all(Address at) {
    Outcome outcome;
    wake(at, ~0u, FUTEX_BITSET_MATCH_ANY, outcome);
    return outcome.woken;
}

Sleepers::Outcome Sleepers::futex(std::size_t thread, const Arguments& a, double now) {
    Outcome outcome;
    const auto returns = [&](std::int64_t result) {
        outcome.result = result;
        return outcome;
    };
    // As the kernel does, which wakes one where none was asked for.
    const auto most = [](std::uint64_t count) {
        return static_cast<std::uint32_t>(std::max(1, static_cast<std::int32_t>(count)));
    };
    const auto command = static_cast<int>(a[1]) & FUTEX_CMD_MASK;
    const Address at{a[0]}, other{a[4]};
    const bool has_bits = command == FUTEX_WAIT_BITSET || command == FUTEX_WAKE_BITSET;
    const auto bits = has_bits ? static_cast<std::uint32_t>(a[5]) : FUTEX_BITSET_MATCH_ANY;
    const auto word = memory_.read_as<std::uint32_t>(at);
    if (a[0] % sizeof(std::uint32_t) != 0 || bits == 0) return returns(-EINVAL);
    if (!word) return returns(-EFAULT);
    switch (command) {
        case FUTEX_WAIT:
        case FUTEX_WAIT_BITSET: {
            if (*word != static_cast<std::uint32_t>(a[2])) return returns(-EAGAIN);
            std::optional<double> until;
            if (a[3] != 0) {
                const int clock =
                    (a[1] & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
                const auto span = span_at({a[3]}, command == FUTEX_WAIT_BITSET, clock);
                if (!span) return returns(-EFAULT);
                until = now + *span;
            }
            asleep_.push_back({thread, at, bits, until});
            outcome.kind = Outcome::Kind::sleeps;
            return outcome;
        }
        case FUTEX_WAKE:
        case FUTEX_WAKE_BITSET:
            return returns(static_cast<std::int64_t>(wake(at, most(a[2]), bits, outcome)));
        case FUTEX_CMP_REQUEUE:
            if (*word != static_cast<std::uint32_t>(a[5])) return returns(-EAGAIN);
            [[fallthrough]];
        case FUTEX_REQUEUE: {
            // Here none may be asked for.
            auto count = wake(at, static_cast<std::uint32_t>(a[2]), bits, outcome);
            auto left = static_cast<std::uint32_t>(a[3]);
            for (auto& sleeper : asleep_) {
                if (left == 0 || sleeper.at != at) continue;
                sleeper.at = other;
                --left;
                ++count;
            }
            return returns(static_cast<std::int64_t>(count));
        }
        default:
            outcome.kind = Outcome::Kind::unknown;
            return outcome;
    }
}

bool Sleepers::sleep(std::size_t thread, std::uint64_t number, const Arguments& a, double now) {
    const bool with_clock = number == SYS_clock_nanosleep;
    const bool is_moment = with_clock && (a[1] & TIMER_ABSTIME) != 0;
    const auto span =
        span_at({a[with_clock ? 2 : 0]}, is_moment, static_cast<int>(static_cast<clockid_t>(a[0])));
    if (!span || *span <= 0) return false;
    asleep_.push_back({thread, {}, ~0u, now + *span});
    return true;
}

bool Sleepers::will_anyone_wake() const {
    return std::ranges::any_of(asleep_,
                               [](const auto& sleeper) { return sleeper.until.has_value(); });
}

std::optional<Sleepers::Woken> Sleepers::over(double now, bool at_once) {
    const auto first = std::ranges::min_element(asleep_, {}, [](const Sleeper& sleeper) {
        return sleeper.until.value_or(std::numeric_limits<double>::infinity());
    });
    if (first == asleep_.end() || !first->until || (!at_once && *first->until > now)) return {};
    const Woken woken{first->thread, first->at != Address{}};
    asleep_.erase(first);
    return woken;
}

}  // namespace shadowprof::emu::translator
