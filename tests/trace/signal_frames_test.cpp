#include "trace/signal_frames.h"

#include <doctest/doctest.h>

namespace shadowprof::trace {

TEST_CASE("a handler is over when the stack pointer is above its frame") {
    SignalFrames frames;
    frames.moved({0x6ff8, 0x8000});
    frames.is_at(0x7000);  // it has returned, to what calls sigreturn
    CHECK(frames.depth() == 1);
    frames.moved({0x5ff8, 0x6f00});
    frames.is_at(0x5000);
    CHECK(frames.depth() == 2);
    SUBCASE("one after the other by their returns") {
        frames.moved({0x6f00});
        CHECK(frames.depth() == 1);
        frames.moved({0x8000});
        CHECK(frames.depth() == 0);
    }
    SUBCASE("both by longjmp") {
        frames.is_at(0x7e00);
        CHECK(frames.depth() == 0);
        frames.is_at(0x5000);
        CHECK(frames.depth() == 0);
    }
    SUBCASE("both by longjmp, which is known when the next one begins") {
        frames.moved({0x6ff8, 0x7e00});
        CHECK(frames.depth() == 1);
    }
    SUBCASE("with their program") {
        frames.moved({StackMove::new_stack});
        CHECK(frames.depth() == 0);
    }
    SUBCASE("not where nothing is known of the stack") {
        frames.moved({});
        CHECK(frames.depth() == 2);
    }
}

TEST_CASE("a handler may have a stack of its own, above the thread's or below") {
    for (const std::uint64_t own : {0x100'0000, 0x900'0000}) {
        SignalFrames frames;
        frames.moved({own, 0x500'0000});
        frames.is_at(own - 0x1000);
        CHECK(frames.depth() == 1);
        frames.is_at(0x500'0000 - 0x1000);  // longjmp, and some calls
        CHECK(frames.depth() == 0);
    }
}

}  // namespace shadowprof::trace
