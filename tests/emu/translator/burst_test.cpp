#include "emu/translator/in_place/burst.h"

#include <doctest/doctest.h>
#include <x86intrin.h>

#include <chrono>
#include <thread>
#include <vector>

#include "emu/tuning.h"

using namespace shadowprof::emu::translator;
namespace tuning = shadowprof::emu::tuning;

namespace {

constexpr BurstLength usual{0, 400'000};

// A thread in the cache, which is disturbed for a while, and then goes through parts of its stream
// at a rate of its own.
class InCache {
  public:
    explicit InCache(BurstExperience& experience)
        : experience_(experience), began_(__rdtsc() - 1'000'000'000), now_(began_) {}

    void executes_part(double nanoseconds_of_block, std::uint64_t blocks, double lost = 0,
                       Work besides = {}) {
        now_ += experience_.ticks(nanoseconds_of_block * static_cast<double>(blocks) + lost);
        Work work{.blocks = blocks, .instructions = 5 * blocks, .segments = blocks / 10};
        work += besides;
        stretches_.push_back({.work = work, .until = now_, .calls_began = 0, .calls_over = 0});
        done_ += work;
    }
    // Until now.
    ThreadArea area() const {
        ThreadArea area{};
        area.went_on_at = began_;
        area.asked_at = now_;
        return area;
    }
    const std::vector<Stretch>& stretches() const { return stretches_; }
    const Work& done() const { return done_; }

  private:
    BurstExperience& experience_;
    std::uint64_t began_, now_;
    std::vector<Stretch> stretches_;
    Work done_;
};

// The rate of the time stamp counter is known better after a while.
BurstExperience experience_of_the_clock() {
    BurstExperience experience;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return experience;
}

double covered(BurstExperience& experience, const InCache& thread) {
    Burst burst(usual, experience);
    burst.has_asked(thread.area());
    burst.ended(thread.stretches(), thread.done());
    return burst.covers(thread.done(), 0);
}

constexpr double in_block = 5;  // instructions
// In a loop, where the cache executes a little more for each block.
double natively(double nanoseconds_of_block, std::uint64_t blocks) {
    return nanoseconds_of_block * static_cast<double>(blocks) * in_block /
           (in_block + tuning::instructions_for_block);
}

}  // namespace

TEST_CASE("what a cold beginning takes longer is not the program's") {
    auto experience = experience_of_the_clock();
    InCache thread(experience);
    thread.executes_part(1, 10'000, 70'000);
    for (int part = 0; part < 10; ++part) thread.executes_part(1, 30'000);
    CHECK(covered(experience, thread) == doctest::Approx(natively(1, 310'000)).epsilon(0.05));
}

TEST_CASE("a beginning that waits longer than any disturbance explains is the program's") {
    auto experience = experience_of_the_clock();
    InCache thread(experience);
    thread.executes_part(100, 10'000);  // a list that is chased through memory
    for (int part = 0; part < 10; ++part) thread.executes_part(1, 30'000);
    CHECK(covered(experience, thread) > natively(100, 10'000) * 0.8);
}

TEST_CASE("bursts in quick and in stalled code cover what the program takes for each") {
    auto experience = experience_of_the_clock();
    for (int round = 0; round < 3; ++round) {
        InCache quick(experience), stalled(experience);
        for (int part = 0; part < 12; ++part) {
            quick.executes_part(0.5, 60'000, part == 0 ? 50'000 : 0);
            stalled.executes_part(50, 700, part == 0 ? 50'000 : 0);
        }
        CHECK(covered(experience, quick) == doctest::Approx(natively(0.5, 720'000)).epsilon(0.05));
        CHECK(covered(experience, stalled) == doctest::Approx(natively(50, 8400)).epsilon(0.05));
    }
}

TEST_CASE(
    "looking up where jumps lead, and code that comes into the caches, is not the program's") {
    auto experience = experience_of_the_clock();
    InCache calls(experience), spread(experience);
    for (int part = 0; part < 12; ++part) {
        calls.executes_part(2, 20'000, 0, {.indirect = 4000});
        spread.executes_part(2, 20'000, 100 * tuning::nanoseconds_of_fresh, {.fresh = 100});
    }
    const auto besides = tuning::instructions_for_block + tuning::instructions_for_indirect / 5;
    CHECK(covered(experience, calls) ==
          doctest::Approx(2 * 240'000 * in_block / (in_block + besides)).epsilon(0.05));
    CHECK(covered(experience, spread) == doctest::Approx(natively(2, 240'000)).epsilon(0.05));
}

TEST_CASE("a burst goes on for the time that is left") {
    auto experience = experience_of_the_clock();
    Burst burst(usual, experience);
    CHECK(!burst.is_over({}));
    const auto all = burst.ticks_left();
    InCache thread(experience);
    thread.executes_part(1, 300'000);
    burst.has_asked(thread.area());
    CHECK(static_cast<double>(burst.ticks_left()) ==
          doctest::Approx(static_cast<double>(all) / 4).epsilon(0.05));
    thread.executes_part(1, 100'000);
    Burst whole(usual, experience);
    whole.has_asked(thread.area());
    CHECK(whole.is_over(thread.done()));
}

TEST_CASE("a burst whose thread had no processor has not waited for code") {
    auto experience = experience_of_the_clock();
    Burst burst(usual, experience);
    burst.had_no_processor(0);
    InCache thread(experience);
    thread.executes_part(1, 10'000);
    burst.has_asked(thread.area());
    auto later = thread.area();
    later.went_on_at = later.asked_at + experience.ticks(1.5 * tuning::longest_wait_in_burst);
    later.asked_at = later.went_on_at + experience.ticks(1000);
    burst.has_asked(later);
    CHECK(burst.takes_too_long());
    burst.had_no_processor(static_cast<std::uint64_t>(tuning::longest_wait_in_burst));
    CHECK(!burst.takes_too_long());
}
