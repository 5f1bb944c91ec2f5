// A target with 50 threads besides the main one, for attach_threads.py. 25 of them sleep, each in a
// call that a careless debugger makes return EINTR. The other 25 come and go: they compute
// something known and exit, and the main thread starts others in their place, on the same stacks,
// so that the memory map does not change.
//
// It prints "ready" when all run, ends at the end of its stdin, and then prints what went wrong:
// nothing, unless it was disturbed. No signal is ever sent to it.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>

namespace {

constexpr int sleepers = 25, workers = 25;

std::atomic<bool> ending = false;
std::atomic<long> calls, wrong, started;

// A call that sleeps for 150 ms and then returns `expected`.
struct Sleeper {
    const char* name;
    int expected;
    int (*sleep_once)();  // errno, 0 for success
    std::atomic<long> interrupted = 0;
    std::atomic<long> unexpected = 0;
};

constexpr long nap = 150'000'000;
constexpr timespec nap_time{0, nap};
constexpr int nap_milliseconds = nap / 1'000'000;

int error_of(long result) {
    return result < 0 ? errno : 0;
}

int wait_for_events() {
    thread_local const int poll_set = epoll_create1(0);
    epoll_event event;
    return error_of(epoll_wait(poll_set, &event, 1, nap_milliseconds));
}

int wait_for_signal() {
    sigset_t none_comes;
    sigemptyset(&none_comes);
    sigaddset(&none_comes, SIGUSR1);
    return error_of(sigtimedwait(&none_comes, nullptr, &nap_time));
}

int wait_for_semaphore() {
    thread_local const int semaphore = [] {
        const int id = semget(IPC_PRIVATE, 1, 0600);
        return id;
    }();
    sembuf take{0, -1, 0};
    const int error = error_of(semtimedop(semaphore, &take, 1, &nap_time));
    if (ending) semctl(semaphore, 0, IPC_RMID);
    return error;
}

int wait_for_data() {
    thread_local const int socket_end = [] {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return -1;
        const timeval limit{0, nap / 1000};
        setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        return ends[0];
    }();
    char byte;
    return error_of(recv(socket_end, &byte, 1, 0));
}

std::array<Sleeper, 4> kinds{{{"epoll_wait", 0, wait_for_events},
                              {"sigtimedwait", EAGAIN, wait_for_signal},
                              {"semtimedop", EAGAIN, wait_for_semaphore},
                              {"recv", EAGAIN, wait_for_data}}};

void* sleep_often(void* argument) {
    auto& kind = *static_cast<Sleeper*>(argument);
    ++started;
    do {
        const int error = kind.sleep_once();
        ++calls;
        if (error == EINTR)
            ++kind.interrupted;
        else if (error != kind.expected)
            ++kind.unexpected;
    } while (!ending);
    return nullptr;
}

// The 200,000th state of a generator that starts at 1.
std::uint64_t compute() {
    std::uint64_t state = 1;
    for (int i = 0; i < 200'000; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        asm volatile("" : "+r"(state));
    }
    return state;
}

void* work_once(void* expected) {
    ++started;
    for (int i = 0; i < 10; ++i) {
        if (compute() != *static_cast<std::uint64_t*>(expected)) ++wrong;
        usleep(10'000);
    }
    return nullptr;
}

bool stdin_ended() {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, 1) > 0 && (input.revents & POLLHUP);
}

alignas(4096) std::array<std::array<char, 64 * 1024>, workers> stacks;

pthread_t start_worker(std::size_t slot, std::uint64_t& expected) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stacks[slot].data(), stacks[slot].size());
    pthread_t thread;
    if (pthread_create(&thread, &attributes, work_once, &expected) != 0) ++wrong;
    pthread_attr_destroy(&attributes);
    return thread;
}

}  // namespace

int main() {
    sigset_t awaited;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &awaited, nullptr);

    std::uint64_t expected = compute();
    std::array<pthread_t, sleepers> sleeping;
    for (std::size_t i = 0; i < sleepers; ++i)
        pthread_create(&sleeping[i], nullptr, sleep_often, &kinds[i % kinds.size()]);
    std::array<pthread_t, workers> working;
    for (std::size_t i = 0; i < workers; ++i) working[i] = start_worker(i, expected);

    while (started < sleepers + workers) stdin_ended();
    std::puts("ready");
    std::fflush(stdout);

    for (std::size_t slot = 0; !stdin_ended(); slot = (slot + 1) % workers) {
        pthread_join(working[slot], nullptr);
        working[slot] = start_worker(slot, expected);
    }
    ending = true;
    for (auto thread : working) pthread_join(thread, nullptr);
    for (auto thread : sleeping) pthread_join(thread, nullptr);

    for (auto& kind : kinds)
        std::printf("%s: %ld EINTR, %ld unexpected\n", kind.name, kind.interrupted.load(),
                    kind.unexpected.load());
    std::printf("%ld wrong results\n", wrong.load());
    return calls > 0 && started > sleepers + workers ? 0 : 1;
}
