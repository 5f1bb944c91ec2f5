#include "sampling/modes/neighbour_pages.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "proc/own_pages.h"
#include "shared_pages.h"

using namespace shadowprof;
using namespace shadowprof::sampling;
using namespace shadowprof::shadow_test;
using namespace std::chrono_literals;

namespace {

// Until this many pages of the memory are the child's own; false if that takes too long.
bool has_for_itself(pid_t child, const proc::Maps& maps, Memory& memory, std::size_t count) {
    const Address begin{reinterpret_cast<std::uint64_t>(memory.bytes())};
    for (int n = 0; n < 3000; ++n) {
        std::size_t own = 0;
        for (const auto each : proc::pages_in_memory(child, maps).own)
            if (each >= begin && each < begin + pages * page) ++own;
        if (own >= count) return true;
        std::this_thread::sleep_for(10ms);
    }
    return false;
}

struct Scene {
    Memory memory;
    bool fine = false;
    long faults = 0;
    // Writes to the first hundred pages and, when it goes on, to some that follow. After 64 faults
    // it is looked at, and has at least as many neighbours.
    Child child{[&] {
        memory.write(0, 100, fine);
        raise(SIGSTOP);
        bool others_are_fine = false;
        faults = memory.write(100, 128, others_are_fine);
        return fine && others_are_fine && faults < 8;
    }};
    proc::Maps maps = *proc::Maps::of(child.pid());
};

}  // namespace

TEST_CASE("the neighbours of what a replica has written to are copied, and hold what they held") {
    Scene scene;
    NeighbourPages all{true};
    NeighbourPages::OfReplica replica{
        all, scene.child.pid(), std::make_shared<const proc::Maps>(scene.maps), 0, {}};
    scene.child.live();
    CHECK(has_for_itself(scene.child.pid(), scene.maps, scene.memory, 128));
    CHECK(replica.end() >= 28);
    scene.child.live();
    CHECK(scene.child.was_fine());
    for (std::size_t n = 0; n < pages; ++n)
        CHECK(scene.memory.bytes()[n * page] == static_cast<char>(n));
}

TEST_CASE("nothing is copied where copies are cheap, nor before there were as many faults") {
    for (const bool dear : {false, true}) {
        Scene scene;
        NeighbourPages all{dear};
        constexpr std::uint64_t more_faults_than_it_has = 1000;
        NeighbourPages::OfReplica replica{all,
                                          scene.child.pid(),
                                          std::make_shared<const proc::Maps>(scene.maps),
                                          more_faults_than_it_has,
                                          {}};
        scene.child.live();
        std::this_thread::sleep_for(100ms);
        CHECK(replica.end() == 0);
        scene.child.live();
        CHECK(!scene.child.was_fine());  // it had a fault for each
    }
}
