// Keeping a processor from its thread for a moment.
#include "sampling/schedule/preemptor.h"

#include <doctest/doctest.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <future>
#include <thread>

#include "base/clock.h"
#include "proc/processors.h"
#include "support/patience.h"

using namespace shadowprof;
using namespace shadowprof::proc;
using namespace shadowprof::sampling;
using namespace shadowprof::testing;
using namespace std::chrono_literals;

namespace {

// Counts without a pause, and nowhere but on one processor.
class Spinner {
  public:
    Spinner() {
        thread_ = std::thread{[this] {
            processor_ = sched_getcpu();
            confine_to(processor_);
            while (!ends_) ++count_;
        }};
        REQUIRE(becomes_true([&] { return count_ > 0; }));
    }
    ~Spinner() {
        ends_ = true;
        thread_.join();
    }
    int processor() const { return processor_; }
    std::uint64_t count() const { return count_; }

  private:
    std::atomic<int> processor_{-1};
    std::atomic<std::uint64_t> count_{0};
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

template <typename Action>
void elsewhere_than(int processor, Action act) {
    // Which hands on what REQUIRE throws.
    std::async(std::launch::async, [&] {
        cpu_set_t others;
        REQUIRE(sched_getaffinity(0, sizeof others, &others) == 0);
        CPU_CLR(processor, &others);
        REQUIRE(sched_setaffinity(0, sizeof others, &others) == 0);
        act();
    }).get();
}

}  // namespace

TEST_CASE("a thread whose processor is occupied does not run there until it is released") {
    if (std::thread::hardware_concurrency() < 2) return;
    const Spinner spinner;
    Preemptor preemptor;
    elsewhere_than(spinner.processor(), [&] {
        // Others may take the processor from the preemptor, or ours from us: then we look again.
        CHECK(becomes_true([&] {
            const auto moment = Clock::now() + 1ms;
            preemptor.send(spinner.processor(), moment);
            std::this_thread::sleep_until(moment);
            preemptor.await();
            const auto before = spinner.count();
            for (const auto then = Clock::now(); Clock::now() < then + 20us;) {
            }
            const bool stood_still = spinner.count() == before;
            const auto since = preemptor.occupies_since(spinner.processor());
            CHECK(!preemptor.occupies_since(spinner.processor() + 1));
            preemptor.release();
            CHECK(!preemptor.occupies_since(spinner.processor()));
            return since && *since >= moment && stood_still;
        }));
    });
    const auto before = spinner.count();
    CHECK(becomes_true([&] { return spinner.count() > before; }));
}

TEST_CASE("who is there may be held up, and who does not come is not waited for") {
    if (std::thread::hardware_concurrency() < 2) return;
    const Spinner spinner;
    Preemptor preemptor;
    const auto occupies_for_a_millisecond = [&](auto come) {
        const auto moment = Clock::now() + 1ms;
        preemptor.send(spinner.processor(), moment);
        std::this_thread::sleep_until(moment);
        come();
        std::this_thread::sleep_for(1ms);
        const auto before = spinner.count();
        for (const auto then = Clock::now(); Clock::now() < then + 20us;) {
        }
        const bool stood_still = spinner.count() == before;
        preemptor.release();
        return stood_still;
    };
    elsewhere_than(spinner.processor(), [&] {
        CHECK(becomes_true([&] { return occupies_for_a_millisecond([&] { preemptor.await(); }); }));
        CHECK(becomes_true([&] { return !occupies_for_a_millisecond([] {}); }));
    });
}

TEST_CASE("who was not sent is not awaited, and occupies nothing") {
    Preemptor preemptor;
    preemptor.await();
    CHECK(!preemptor.occupies_since(sched_getcpu()));
    preemptor.release();
}
