// signals_in_order COUNT: one thread sends the other so many numbered real-time signals, and a
// timer of 1 ms interrupts both. A lost, doubled or misdirected signal shows in what it prints,
// which is the same in every run: the signals' number, a checksum of their numbers in order, and
// the calls that answered EINTR without a signal.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

std::atomic<std::uint64_t> received, checksum, ticks;
std::atomic<bool> finished;
pthread_t receiver;
sem_t room;

void on_number(int, siginfo_t* info, void*) {
    checksum = checksum * 31 + static_cast<std::uint64_t>(info->si_value.sival_int);
    ++received;
    sem_post(&room);
}

void on_tick(int) {
    ++ticks;
}

void* send_all(void* count) {
    const auto all = *static_cast<const std::uint64_t*>(count);
    for (std::uint64_t n = 0; n < all; ++n) {
        while (sem_wait(&room) != 0 && errno == EINTR) {
        }
        sigval value;
        value.sival_int = static_cast<int>(n);
        if (pthread_sigqueue(receiver, SIGRTMIN, value) != 0) std::abort();
    }
    finished = true;
    return nullptr;
}

// Sleeps that only a signal may cut short.
std::uint64_t interrupted_without_signal() {
    const auto before = received + ticks;
    const timespec nap{0, 200'000};
    const bool cut_short = clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr) == EINTR;
    return cut_short && received + ticks == before ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t count = argc == 2 ? std::strtoull(argv[1], nullptr, 10) : 1000;
    receiver = pthread_self();
    sem_init(&room, 0, 8);
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = on_number;
    sigaction(SIGRTMIN, &action, nullptr);
    action.sa_flags = SA_RESTART;
    action.sa_handler = on_tick;
    sigaction(SIGALRM, &action, nullptr);
    const itimerval every_millisecond{{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &every_millisecond, nullptr);

    pthread_t sender;
    auto all = count;
    pthread_create(&sender, nullptr, send_all, &all);
    std::uint64_t unexplained = 0, state = 1;
    while (!finished || received < count) {
        unexplained += interrupted_without_signal();
        for (int i = 0; i < 20'000; ++i) {
            state = state * 6364136223846793005u + 1;
            asm volatile("" : "+r"(state));
        }
    }
    pthread_join(sender, nullptr);
    std::printf("%lu signals, checksum %lx, %lu calls interrupted by nobody\n",
                static_cast<unsigned long>(received), static_cast<unsigned long>(checksum),
                static_cast<unsigned long>(unexplained));
    return ticks > 0 ? 0 : 1;
}
