// How long a program stands still when it is made to fork a replica, beside its own fork(2), by the
// size of its memory: the table of bench/fork/run.sh.
//
//   fork-bench [ROUNDS [MEGABYTES...]]
//
// For each size, a program (this one again) touches that much memory and then does nothing but read
// the clock. In turns it forks by itself, and notes how long the call took; and it is made to fork
// a replica, and notes the longest time between two readings. The replica is taken and killed
// before the next turn. The table has medians, and the ninth decile of the times for replicas.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "inject/fork_site.h"
#include "inject/replica.h"
#include "proc/process_info.h"
#include "ptrace/inherited_signals.h"

using namespace shadowprof;
using namespace shadowprof::proc;
using namespace shadowprof::ptrace;
using namespace shadowprof::inject;

namespace {

constexpr std::size_t megabyte = 1 << 20;
constexpr std::size_t file_size = megabyte;

// What program and bench share, in a file that both map.
struct Board {
    std::atomic<std::uint32_t> forks_wanted{0};
    std::atomic<std::uint32_t> forks_done{0};
    std::atomic<std::uint32_t> watches_wanted{0};  // ends a watch for the longest gap, begins one
    std::atomic<std::uint32_t> watches_begun{0};
    std::atomic<std::int64_t> nanoseconds{0};  // of the fork, or the longest gap of the last watch
    std::atomic<bool> is_ready{false};
    std::atomic<bool> is_over{false};
};

Board* map_board(int file) {
    void* place = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (place == MAP_FAILED) throw UserError("no shared memory");
    return static_cast<Board*>(place);
}

std::int64_t now() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

// --- the program ---------------------------------------------------------------------------------

void occupy(std::size_t megabytes, bool huge) {
    void* memory = mmap(nullptr, megabytes * megabyte, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, megabytes * megabyte, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    auto* bytes = static_cast<volatile char*>(memory);
    for (std::size_t at = 0; at < megabytes * megabyte; at += 4096) bytes[at] = 1;
}

void fork_bare(Board& board) {
    const auto begin = now();
    const pid_t child = fork();
    if (child == 0) _exit(0);
    board.nanoseconds = now() - begin;
    waitpid(child, nullptr, 0);
    ++board.forks_done;
}

int be_program(int file, std::size_t megabytes, bool huge) {
    auto& board = *map_board(file);
    occupy(megabytes, huge);
    board.is_ready = true;
    std::int64_t longest = 0;
    for (auto last = now(); !board.is_over;) {
        if (board.forks_wanted != board.forks_done) {
            fork_bare(board);
            last = now();
        }
        if (const auto wanted = board.watches_wanted.load(); wanted != board.watches_begun) {
            board.nanoseconds = std::exchange(longest, 0);
            board.watches_begun = wanted;
            last = now();
        }
        const auto time = now();
        longest = std::max(longest, time - last);
        last = time;
    }
    return 0;
}

// --- the bench -----------------------------------------------------------------------------------

// Meanwhile everything that happens to the program is passed on.
void wait_until(Tracer& tracer, const std::function<bool()>& condition) {
    while (tracer.alive() && !condition())
        if (const auto event = tracer.wait(Clock::now() + std::chrono::microseconds{200}))
            tracer.pass_on(*event);
}

double microseconds(std::int64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1000;
}

std::optional<double> time_fork(Tracer& tracer, Board& board) {
    const auto wanted = ++board.forks_wanted;
    wait_until(tracer, [&] { return board.forks_done == wanted; });
    return microseconds(board.nanoseconds);
}

// As a session does it, but without keeping the processor from the thread first.
std::optional<PendingReplica> fork_replica(Tracer& tracer, ForkSite& fork_site, Thread& thread) {
    if (!is_running(tracer.pid(), thread.tid())) return {};
    if (!thread.interrupt()) return {};
    fork_site.look_ahead(thread);
    while (tracer.alive()) {
        const auto event = tracer.wait(Clock::now() + std::chrono::seconds{1});
        if (!event) continue;
        if (event->kind != EventKind::interrupted) {
            tracer.pass_on(*event);
            continue;
        }
        auto birth = fork_site.fork(thread);
        if (birth)
            fork_site.await_return(*birth);
        else
            tracer.pass_on(*event);
        return birth;
    }
    return {};
}

// The longest time that the program stood still since the last such call.
double longest_gap(Tracer& tracer, Board& board) {
    const auto wanted = ++board.watches_wanted;
    wait_until(tracer, [&] { return board.watches_begun == wanted; });
    return microseconds(board.nanoseconds);
}

std::optional<double> time_replica(Tracer& tracer, ForkSite& fork_site, Thread& thread,
                                   Board& board) {
    longest_gap(tracer, board);
    const auto birth = fork_replica(tracer, fork_site, thread);
    if (!birth) return {};
    bool taken = false;
    std::thread{[&] {
        std::string why;
        taken = Replica::take(fork_site, *birth, why) != nullptr;
        if (!taken) fmt::print(stderr, "{}\n", why);
    }}.join();
    fork_site.prepare();
    const auto gap = longest_gap(tracer, board);
    if (!taken) return {};
    return gap;
}

double quantile(std::vector<double> values, double part) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

struct Row {
    std::vector<double> forks, births;
};

// `launched`: as `shadowprof run` does, else as `attach`.
Row measure(std::size_t megabytes, bool huge, bool launched, int rounds) {
    Row row;
    const int file = static_cast<int>(syscall(SYS_memfd_create, "board", 0));
    if (file < 0 || ftruncate(file, sizeof(Board)) != 0) throw UserError("no shared memory");
    auto& board = *new (map_board(file)) Board;
    const std::vector<std::string> command{"/proc/self/exe", "program", std::to_string(file),
                                           std::to_string(megabytes), huge ? "1" : "0"};
    pid_t child = 0;
    if (!launched) {
        child = fork();
        if (child == 0) {
            InheritedSignals::restore();
            execl(command[0].c_str(), "fork-bench", command[1].c_str(), command[2].c_str(),
                  command[3].c_str(), command[4].c_str(), nullptr);
            _exit(127);
        }
    }
    std::thread{[&] {
        while (child != 0 && !board.is_ready)
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        const auto tracer = child == 0 ? Tracer::launch(command) : Tracer::attach(child);
        wait_until(*tracer, [&] { return board.is_ready.load(); });
        auto* thread = tracer->thread(tracer->pid());
        std::string why;
        std::unique_ptr<ForkSite> fork_site;
        thread->interrupt();
        while (tracer->alive() && !fork_site) {
            const auto event = tracer->wait(Clock::now() + std::chrono::seconds{1});
            if (event && event->kind == EventKind::interrupted) {
                fork_site = ForkSite::create(*tracer, *thread, file_size, why);
                thread->resume();
                if (!fork_site) throw UserError(why);
            } else if (event) {
                tracer->pass_on(*event);
            }
        }
        // The first round finds caches and tables as they will not be again.
        for (int round = -1; round < rounds && tracer->alive(); ++round) {
            const auto fork_time = time_fork(*tracer, board);
            const auto birth_time = time_replica(*tracer, *fork_site, *thread, board);
            if (round < 0) continue;
            if (fork_time) row.forks.push_back(*fork_time);
            if (birth_time) row.births.push_back(*birth_time);
        }
        fork_site.reset();
        board.is_over = true;
        while (tracer->alive())
            if (const auto event = tracer->wait(Clock::now() + std::chrono::seconds{1}))
                tracer->pass_on(*event);
    }}.join();
    munmap(&board, sizeof board);
    close(file);
    return row;
}

void print_row(std::size_t megabytes, bool huge, const char* way, const Row& row) {
    const auto fork_time = quantile(row.forks, 0.5), birth = quantile(row.births, 0.5);
    const auto allowed = std::max(fork_time * 1.5, fork_time + 120);
    fmt::print("{:>6} {:>5} {:>7} {:>10.0f} {:>10.0f} {:>10.0f} {:>7.2f} {:>+8.0f}  {}\n",
               megabytes, huge ? "on" : "off", way, fork_time, birth, quantile(row.births, 0.9),
               birth / fork_time, birth - fork_time, birth <= allowed ? "kept" : "MISSED");
    std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
    if (count == 5 && std::string_view{arguments[1]} == "program")
        return be_program(std::atoi(arguments[2]),
                          static_cast<std::size_t>(std::atol(arguments[3])),
                          arguments[4][0] == '1');
    InheritedSignals::remember();
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 41;
    std::vector<std::size_t> sizes;
    for (int n = 2; n < count; ++n)
        sizes.push_back(static_cast<std::size_t>(std::atol(arguments[n])));
    if (sizes.empty()) sizes = {10, 40, 160, 640, 2048, 4096};
    fmt::print(
        "Times in microseconds; allowed: 1.5 times the fork, or 120 us more.\n"
        "    MB  huge     way  bare fork      birth  9th dec.   ratio    more\n");
    try {
        for (const bool huge : {false, true})
            for (const auto megabytes : sizes)
                for (const bool launched : {true, false})
                    print_row(megabytes, huge, launched ? "run" : "attach",
                              measure(megabytes, huge, launched, rounds));
    } catch (const UserError& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
