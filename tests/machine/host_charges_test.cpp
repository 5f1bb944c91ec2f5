#include "machine/host_charges.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "base/clock.h"
#include "shared_pages.h"

using namespace shadowprof;
using namespace shadowprof::machine;
using namespace shadowprof::testing;

namespace {

// What else the test has to do with memory, and what the kernel counts late.
constexpr std::uint64_t some = 150;

// To measure them has faults of our own, which belong before all tests.
[[maybe_unused]] const HostPrices& measured_before = host_prices();

// We are the target. Since this was made, were so many faults extra?
class Extra {
  public:
    explicit Extra(const HostCharges& copies) : copies_(copies), before_(copies.extra_faults()) {}
    void check_about(std::uint64_t count) const {
        const auto now = copies_.extra_faults() - before_;
        CHECK(now + some >= count);
        CHECK(now <= count + some);
    }

  private:
    const HostCharges& copies_;
    std::uint64_t before_;
};

void write(Memory& memory, std::size_t from, std::size_t to) {
    for (auto n = from; n < to; ++n) memory.bytes()[n * page] += 1;
}

// Writes to pages that are given back each time: faults without growth.
void give_back_and_write(Memory& memory, std::size_t count, std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
        madvise(memory.bytes(), count * page, MADV_DONTNEED);
        write(memory, 0, count);
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
}

// So long that it is known to have hardly any faults of its own.
void stay_quiet(HostCharges& copies) {
    std::this_thread::sleep_for(std::chrono::milliseconds{200});
    copies.replicas(0);
}

bool does_nothing() {
    return true;
}

}  // namespace

TEST_CASE("the first writes to pages that a replica shares are extra, each once, and cost") {
    Memory memory;
    HostCharges copies{getpid()};
    stay_quiet(copies);
    {
        Child replica{does_nothing};
        CHECK(copies.replicas(1) > Seconds{0});
        const Extra extra{copies};
        write(memory, 0, 500);
        CHECK(copies.replicas(1) > Seconds{0});
        extra.check_about(500);
        write(memory, 0, 500);
        copies.replicas(1);
        extra.check_about(500);
        replica.live();
        CHECK(replica.was_fine());
    }
    copies.replicas(0);
    const Extra aftermath{copies};
    write(memory, 500, 1000);
    copies.replicas(0);
    aftermath.check_about(500);
}

TEST_CASE("that the target's memory grows is its own") {
    Memory memory;
    HostCharges copies{getpid()};
    stay_quiet(copies);
    Child replica{does_nothing};
    copies.replicas(1);
    const Extra extra{copies};
    Memory more;
    write(memory, 0, 300);
    copies.replicas(1);
    extra.check_about(300);
    replica.live();
    CHECK(replica.was_fine());
}

TEST_CASE("as many faults as the target has by itself are its own") {
    constexpr std::size_t count = 100;
    Memory memory, others;
    HostCharges copies{getpid()};
    for (int n = 0; n < 10; ++n) {
        give_back_and_write(others, count, std::chrono::milliseconds{30});
        copies.replicas(0);
    }
    Child replica{does_nothing};
    copies.replicas(1);
    const long before = faults_so_far();
    give_back_and_write(others, count, std::chrono::milliseconds{200});
    const auto faults = static_cast<std::uint64_t>(faults_so_far() - before);
    CHECK(faults > 1000);
    copies.replicas(1);
    CHECK(copies.extra_faults() < faults / 2);
    replica.live();
    CHECK(replica.was_fine());
}

TEST_CASE("another program in the target's place has nothing of it to write") {
    Memory memory;
    HostCharges copies{getpid()};
    Child replica{does_nothing};
    copies.replicas(1);
    copies.memory_is_new();
    const Extra extra{copies};
    write(memory, 0, 500);
    copies.replicas(1);
    extra.check_about(0);
    replica.live();
    CHECK(replica.was_fine());
}

TEST_CASE("what no birth has shown yet is the risk of one: memory that there was at none") {
    Memory memory;
    HostCharges copies{getpid()};
    write(memory, 0, 1000);
    const auto before = copies.risk_of_fork();
    CHECK(before > Seconds{0});
    Child replica{does_nothing};
    copies.replicas(1);
    const auto known = copies.risk_of_fork();
    CHECK(known < before / 2);
    Memory more;
    write(more, 0, 1000);
    CHECK(copies.risk_of_fork() > known);
    copies.memory_is_new();
    CHECK(copies.risk_of_fork() > before);
    replica.live();
    CHECK(replica.was_fine());
}

TEST_CASE("prices are written and read back, of one boot only, and nothing that is no price") {
    const HostPrices prices{.page_copy = Seconds{2.25e-6},
                            .page_aftermath = Seconds{0.8e-6},
                            .fork = Seconds{60e-6},
                            .intermediary = Seconds{130e-6},
                            .early_stop = Seconds{31e-6},
                            .late_stop = Seconds{45e-6},
                            .look = Seconds{3.5e-6}};
    const auto text = written(prices, "a boot");
    const auto back = read_prices(text, "a boot");
    REQUIRE(back);
    CHECK(back->page_copy == prices.page_copy);
    CHECK(back->late_stop == prices.late_stop);
    CHECK(back->look == prices.look);
    CHECK(!read_prices(text, "another boot"));
    CHECK(!read_prices(written(prices, ""), ""));
    CHECK(!read_prices(text.substr(0, text.size() - 10), "a boot"));
    auto wrong = prices;
    wrong.fork = Seconds{-1};
    CHECK(!read_prices(written(wrong, "a boot"), "a boot"));
    CHECK(!read_prices("", "a boot"));
}
