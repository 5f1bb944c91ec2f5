#include "proc/own_pages.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

using namespace shadowprof;
using namespace shadowprof::proc;

TEST_CASE("pages become a running process's own, and nothing that it writes is lost") {
    constexpr std::size_t count = 256, words = count * page_size / sizeof(std::uint32_t);
    auto* const shared = static_cast<std::uint32_t*>(mmap(
        nullptr, count * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    enum class Phase { beginning, writing, checking };
    auto* const phase = static_cast<std::atomic<Phase>*>(
        mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    madvise(shared, count * page_size, MADV_NOHUGEPAGE);
    for (std::size_t n = 0; n < words; ++n) shared[n] = static_cast<std::uint32_t>(n);
    constexpr std::size_t step = page_size / sizeof(std::uint32_t), part = 7;
    const pid_t child = fork();
    if (child == 0) {
        while (*phase == Phase::beginning) {
        }
        std::uint32_t rounds = 0;
        for (; *phase == Phase::writing; ++rounds)
            for (std::size_t n = 0; n < count; ++n) {
                volatile auto& word = shared[n * step + (n + rounds) % part];
                word = word + 1;
            }
        // Each of the first words of a page was counted up in every seventh round.
        for (std::size_t n = 0; n < words; ++n) {
            const auto in_page = n % step, from = (in_page + part - n / step % part) % part;
            const auto added = in_page < part ? (rounds - from + part - 1) / part : 0;
            if (shared[n] != n + added) _exit(1);
        }
        _exit(0);
    }
    const auto maps = Maps::of(child);
    REQUIRE(maps);
    std::vector<Address> pages;
    for (std::size_t n = 0; n < count; ++n)
        if (n % 16 != 3) pages.push_back({reinterpret_cast<std::uint64_t>(shared + n * step)});
    const auto owned = [&] {
        const auto in_memory = pages_in_memory(child, *maps);
        CHECK(std::ranges::is_sorted(in_memory.own));
        return std::ranges::count_if(
            in_memory.own, [&](Address page) { return std::ranges::binary_search(pages, page); });
    };
    CHECK(owned() == 0);
    *phase = Phase::writing;
    for (int n = 0; n < 100; ++n) make_own(child, pages);
    CHECK(owned() == static_cast<std::ptrdiff_t>(pages.size()));
    *phase = Phase::checking;
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
    for (std::size_t n = 0; n < words; n += step) CHECK(shared[n] == n);
    munmap(shared, count * page_size);
    munmap(phase, page_size);
}

TEST_CASE("what is not there, or cannot be written, stays as it is") {
    auto* const memory = static_cast<char*>(
        mmap(nullptr, 4 * page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    memory[0] = memory[page_size] = 'a';
    mprotect(memory + page_size, page_size, PROT_READ);
    const pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    const Address begin{reinterpret_cast<std::uint64_t>(memory)};
    make_own(child, std::vector<Address>{{0x1000}, begin, begin + page_size});
    const auto maps = Maps::of(child);
    REQUIRE(maps);
    const auto own = pages_in_memory(child, *maps).own;
    CHECK(std::ranges::binary_search(own, begin));
    CHECK(!std::ranges::binary_search(own, begin + page_size));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    CHECK(memory[page_size] == 'a');
    munmap(memory, 4 * page_size);
}
