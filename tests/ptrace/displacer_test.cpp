// Keeping a processor from its thread for a moment.
#include "ptrace/displacer.h"

#include <doctest/doctest.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
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

}  // namespace

TEST_CASE("a thread whose processor is occupied does not run there until it is released") {
    if (std::thread::hardware_concurrency() < 2) return;
    const Spinner spinner;
    Displacer displacer;
    // Others may take the processor from the displacer, or ours from us: then we look again.
    CHECK(becomes_true([&] {
        const auto moment = Clock::now() + 1ms;
        displacer.send(spinner.processor(), moment);
        std::this_thread::sleep_until(moment);
        const auto arrived = displacer.await();
        const auto before = spinner.count();
        for (const auto then = Clock::now(); Clock::now() < then + 20us;) {
        }
        const bool stood_still = spinner.count() == before;
        const bool occupied = displacer.occupies(spinner.processor());
        CHECK(!displacer.occupies(spinner.processor() + 1));
        displacer.release();
        CHECK(!displacer.occupies(spinner.processor()));
        return arrived && *arrived >= moment && occupied && stood_still;
    }));
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
        const bool has_come = come();
        std::this_thread::sleep_for(1ms);
        const auto before = spinner.count();
        for (const auto then = Clock::now(); Clock::now() < then + 20us;) {
        }
        const bool stood_still = spinner.count() == before;
        displacer.release();
        return has_come && stood_still;
    };
    CHECK(becomes_true(
        [&] { return occupies_for_a_millisecond([&] { return displacer.await().has_value(); }); }));
    CHECK(becomes_true([&] { return !occupies_for_a_millisecond([] { return true; }); }));
}

TEST_CASE("nothing runs on the processor of who asks") {
    const Displacer displacer;
    // It may be moved meanwhile.
    CHECK(becomes_true([&] { return displacer.keeps_from_running(sched_getcpu()); }));
    CHECK(!displacer.keeps_from_running(sched_getcpu() + 1));
}

TEST_CASE("who was not sent is not awaited, and occupies nothing") {
    Displacer displacer;
    CHECK(!displacer.await());
    CHECK(!displacer.occupies(sched_getcpu()));
    displacer.release();
}
