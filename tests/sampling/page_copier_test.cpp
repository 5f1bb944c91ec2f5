#include "sampling/kinds/page_copier.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "proc/own_pages.h"
#include "shared_pages.h"

using namespace shadowprof;
using namespace shadowprof::sampling;
using namespace shadowprof::testing;
using namespace std::chrono_literals;

namespace {

constexpr PageCopier::Plan nothing{.ahead = false, .meanwhile = false},
    only_ahead{.meanwhile = false};

// One sample, in which the replica writes to these pages; it is to be told whether that takes
// hardly any faults, or one for each page.
bool sample(PageCopier& ahead, Memory& memory, std::size_t from, std::size_t to, bool copied) {
    Child child{[&] {
        bool fine = false;
        const auto faults = memory.write(from, to, fine);
        const auto count = static_cast<long>(to - from);
        return fine && (copied ? faults < count / 8 : faults >= count);
    }};
    PageCopier::OfReplica replica{ahead, child.pid(),
                                  std::make_shared<const proc::Maps>(*proc::Maps::of(child.pid()))};
    child.live();
    replica.learn();
    return child.was_fine();
}

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

TEST_CASE("what a replica wrote to is copied for the next ones before they begin") {
    Memory memory;
    PageCopier ahead{only_ahead};
    CHECK(sample(ahead, memory, 0, 600, false));
    for (int n = 0; n < 5; ++n) CHECK(sample(ahead, memory, 0, 600, true));
    for (std::size_t n = 0; n < pages; ++n) CHECK(memory.bytes()[n * page] == static_cast<char>(n));
}

TEST_CASE("what was copied in vain is not copied again") {
    Memory memory;
    PageCopier ahead{only_ahead};
    CHECK(sample(ahead, memory, 0, 400, false));
    CHECK(sample(ahead, memory, 400, 1000, false));
    CHECK(sample(ahead, memory, 0, 400, false));
}

TEST_CASE("a program that goes on to write elsewhere is learnt anew") {
    Memory memory;
    PageCopier ahead{only_ahead};
    CHECK(sample(ahead, memory, 0, 400, false));
    for (int n = 1; n < 8; ++n) sample(ahead, memory, 400, 1000, false);
    CHECK(sample(ahead, memory, 400, 1000, false));
    CHECK(sample(ahead, memory, 400, 1000, true));
}

TEST_CASE("nothing is copied where copies are cheap, nor of what is mapped no more") {
    Memory memory;
    PageCopier cheap{nothing};
    CHECK(sample(cheap, memory, 0, 400, false));
    CHECK(sample(cheap, memory, 0, 400, false));

    PageCopier ahead{only_ahead};
    CHECK(sample(ahead, memory, 0, 400, false));
    munmap(memory.bytes(), 200 * page);
    CHECK(sample(ahead, memory, 200, 400, true));
}

TEST_CASE("the neighbours of what a replica has written to are copied, and hold what they held") {
    Scene scene;
    PageCopier all{{.faults_that_teach = 0}};
    PageCopier::OfReplica replica{all, scene.child.pid(),
                                  std::make_shared<const proc::Maps>(scene.maps)};
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
        constexpr std::uint64_t more_faults_than_it_has = 1000;
        PageCopier all{
            {.ahead = dear, .meanwhile = dear, .faults_that_teach = more_faults_than_it_has}};
        PageCopier::OfReplica replica{all, scene.child.pid(),
                                      std::make_shared<const proc::Maps>(scene.maps)};
        scene.child.live();
        std::this_thread::sleep_for(100ms);
        CHECK(replica.end() == 0);
        scene.child.live();
        CHECK(!scene.child.was_fine());  // it had a fault for each
    }
}
