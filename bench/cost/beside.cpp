// beside SECONDS: what a program on one processor loses while the one next to it computes, though
// they share no memory. It executes as many instructions a cycle as it can, in pieces of some
// microseconds, while another process on the next processor computes, or sleeps, for 50 ms at a
// time by chance. Prints how long a piece took on average of what the quickest took, and in which
// part of the time pieces took at least twice, or half as long again: what a hardware thread is
// slowed down by whoever has the other one of its core.
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <vector>

#include "base/clock.h"
#include "machine/core_sharing.h"
#include "proc/processors.h"

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

void compute_a_piece() {
    shadowprof::machine::add_side_by_side(1000);
}

[[noreturn]] void compute_when_asked(const std::atomic<bool>& wanted) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    shadowprof::proc::confine_to(1);
    const sched_param no_priority{};
    sched_setscheduler(0, SCHED_IDLE, &no_priority);
    for (;;) {
        if (wanted)
            compute_a_piece();
        else
            usleep(500);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const Seconds length{argc == 2 ? std::atof(argv[1]) : 30};
    auto* const shared = mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || !shadowprof::proc::confine_to(0)) {
        fmt::print(stderr, "beside: there is no processor 0 for it\n");
        return 1;
    }
    auto& wanted = *new (shared) std::atomic<bool>{false};
    const auto other = fork();
    if (other == 0) compute_when_asked(wanted);

    constexpr Seconds turn{0.05}, until_it_knows{0.003};
    std::array<std::vector<float>, 2> pieces;
    std::mt19937 random{std::random_device{}()};
    for (const auto begun = Clock::now(); Clock::now() - begun < length;) {
        const bool is_beside = random() % 2 != 0;
        wanted = is_beside;
        const auto turned = Clock::now();
        while (Clock::now() - turned < until_it_knows) {
        }
        for (auto last = Clock::now(); last - turned < turn;) {
            compute_a_piece();
            const auto now = Clock::now();
            pieces[is_beside].push_back(static_cast<float>(Seconds{now - last}.count()));
            last = now;
        }
    }
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);

    float best = 1;
    for (const auto& some : pieces)
        for (const auto piece : some) best = std::min(best, piece);
    for (const bool is_beside : {false, true}) {
        double all = 0, slow = 0, very_slow = 0;
        for (const auto piece : pieces[is_beside]) {
            all += piece;
            if (piece >= 1.5f * best) slow += piece;
            if (piece >= 2 * best) very_slow += piece;
        }
        fmt::print("{}: {:.3f} of the quickest; {:.1f} % of the time 1.5 times, {:.1f} % twice\n",
                   is_beside ? "beside" : "alone ",
                   all / static_cast<double>(pieces[is_beside].size()) / best, 100 * slow / all,
                   100 * very_slow / all);
    }
}
