#include "emu/translator/burst.h"

#include <doctest/doctest.h>
#include <x86intrin.h>

#include <chrono>
#include <thread>

#include "emu/tuning.h"

using namespace shadowprof::emu::translator;
namespace tuning = shadowprof::emu::tuning;

namespace {

// A program whose blocks take half a nanosecond, in bursts that are disturbed for a while.
class Program {
  public:
    explicit Program(BurstExperience& experience) : experience_(experience) {
        // The rate of the time stamp counter is known better after a while.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    static constexpr double of_block = 0.5;

    // In so many nanoseconds until it asked, of which some were lost.
    void executes(Burst& burst, std::uint64_t blocks, double lost) {
        const auto took =
            static_cast<double>(blocks) * (of_block + tuning::nanoseconds_of_block) + lost;
        // Long ago enough that a tick's length is the same.
        ThreadArea area{};
        area.went_on_at = __rdtsc() - 1'000'000'000;
        area.asked_at = area.went_on_at + ticks(took);
        burst.has_asked(area, true);
        done_ += Work{blocks, 5 * blocks, 0};
    }
    const Work& done() const { return done_; }
    void begins_again() { done_ = {}; }

  private:
    std::uint64_t ticks(double nanoseconds) const {
        constexpr std::uint64_t many = 20'000;
        return static_cast<std::uint64_t>(nanoseconds * many / experience_.nanoseconds(0, many));
    }

    BurstExperience& experience_;
    Work done_;
};

constexpr BurstLength usual{0, 40'000}, longer{0, 200'000, 40'000};

// Its first part, and as much of what follows as others have.
void executes_two_parts(Program& program, Burst& burst, bool is_long) {
    CHECK(burst.blocks_left(program.done()) > 0);
    program.executes(burst, 20'000, 60'000);
    CHECK(burst.blocks_left(program.done()) > 0);
    CHECK(burst.is_last_part() == !is_long);
    program.executes(burst, 60'000, 30'000);
}

}  // namespace

TEST_CASE("a long burst shows how much others are disturbed") {
    BurstExperience experience;
    Program program(experience);

    Burst first(longer, experience);
    executes_two_parts(program, first, true);
    const auto left = first.blocks_left(program.done());
    CHECK(first.is_last_part());
    CHECK(left > 100'000);  // the long way that is left, whatever a block takes
    program.executes(first, 400'000, 0);
    first.ended(program.done());
    CHECK(experience.disturbance_of_rest() == doctest::Approx(30'000).epsilon(0.1));

    // One of the usual length, which is disturbed alike.
    program.begins_again();
    Burst second(usual, experience);
    executes_two_parts(program, second, false);
    second.ended(program.done());
    CHECK(second.covers(program.done(), 0) ==
          doctest::Approx(Program::of_block * 80'000).epsilon(0.1));
}

TEST_CASE("where no burst was long, what a burst says is believed") {
    BurstExperience experience;
    Program program(experience);
    Burst burst(usual, experience);
    executes_two_parts(program, burst, false);
    burst.ended(program.done());
    CHECK(experience.disturbance_of_rest() == 0);
    CHECK(burst.covers(program.done(), 0) == doctest::Approx(80'000).epsilon(0.1));
}
