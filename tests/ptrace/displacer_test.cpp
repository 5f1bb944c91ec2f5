// Keeping a processor from its thread for a moment.
#include "ptrace/displacer.h"

#include <doctest/doctest.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <future>
#include <thread>

#include "ptrace/harness.h"
#include "ptrace/processors.h"

using namespace shadowprof::ptrace;
using namespace shadowprof::ptrace::testing;
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

// Of all our threads.
std::chrono::nanoseconds cpu_time() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

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
    Displacer displacer;
    elsewhere_than(spinner.processor(), [&] {
        // Others may take the processor from the displacer, or ours from us: then we look again.
        CHECK(becomes_true([&] {
            const auto moment = Clock::now() + 1ms;
            displacer.send(spinner.processor(), moment);
            std::this_thread::sleep_until(moment);
            displacer.await();
            const auto before = spinner.count();
            for (const auto then = Clock::now(); Clock::now() < then + 20us;) {
            }
            const bool stood_still = spinner.count() == before;
            const auto since = displacer.occupies_since(spinner.processor());
            CHECK(!displacer.occupies_since(spinner.processor() + 1));
            displacer.release();
            CHECK(!displacer.occupies_since(spinner.processor()));
            return since && *since >= moment && stood_still;
        }));
    });
    const auto before = spinner.count();
    CHECK(becomes_true([&] { return spinner.count() > before; }));
}

TEST_CASE("who is there may be held up, and who does not come is not waited for") {
    if (std::thread::hardware_concurrency() < 2) return;
    const Spinner spinner;
    Displacer displacer;
    const auto occupies_for_a_millisecond = [&](auto come) {
        const auto moment = Clock::now() + 1ms;
        displacer.send(spinner.processor(), moment);
        std::this_thread::sleep_until(moment);
        come();
        std::this_thread::sleep_for(1ms);
        const auto before = spinner.count();
        for (const auto then = Clock::now(); Clock::now() < then + 20us;) {
        }
        const bool stood_still = spinner.count() == before;
        displacer.release();
        return stood_still;
    };
    elsewhere_than(spinner.processor(), [&] {
        CHECK(becomes_true([&] { return occupies_for_a_millisecond([&] { displacer.await(); }); }));
        CHECK(becomes_true([&] { return !occupies_for_a_millisecond([] {}); }));
    });
}

TEST_CASE("who stands by lets the thread run, and keeps the processor awake until dismissed") {
    if (std::thread::hardware_concurrency() < 2) return;
    Displacer displacer;
    const auto computed_in = [](Clock::duration time) {
        const auto before = cpu_time();
        std::this_thread::sleep_for(time);
        return cpu_time() - before;
    };
    const auto is_there = [&](int processor) {
        const auto moment = Clock::now() + 2ms;
        displacer.send(processor, moment);
        std::this_thread::sleep_until(moment);
        displacer.await();
        const bool is_it = displacer.occupies_since(processor).has_value();
        if (!is_it) displacer.release();
        return is_it;
    };
    const int idle = sched_getcpu();
    elsewhere_than(idle, [&] {
        CHECK(becomes_true([&] {
            if (!is_there(idle)) return false;
            displacer.stand_by();
            displacer.release();
            const auto standing_by = computed_in(500us);
            displacer.dismiss();
            const auto dismissed = computed_in(500us);
            return standing_by > 300us && dismissed < 100us;
        }));
        // Not for long, should it be forgotten.
        CHECK(becomes_true([&] {
            if (!is_there(idle)) return false;
            displacer.stand_by();
            std::this_thread::sleep_for(2ms);
            return computed_in(500us) < 100us;
        }));
    });
    const Spinner spinner;
    elsewhere_than(spinner.processor(), [&] {
        CHECK(becomes_true([&] {
            if (!is_there(spinner.processor())) return false;
            const auto before = spinner.count();
            displacer.stand_by();
            for (const auto then = Clock::now(); Clock::now() < then + 200us;) {
            }
            const auto count = spinner.count() - before;
            displacer.dismiss();
            return count > 0;
        }));
    });
}

TEST_CASE("who was not sent is not awaited, and occupies nothing") {
    Displacer displacer;
    displacer.await();
    CHECK(!displacer.occupies_since(sched_getcpu()));
    displacer.release();
}
