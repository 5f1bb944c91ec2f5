// new_code ROUNDS [SIGNALS_A_SECOND]: each round generates code where none was, or where the last
// round's was, executes each function of it once, and makes system calls in between, some of which
// block. A thread sends it numbered signals meanwhile, and a timer others; their handlers execute
// new code, too. Says "fine" if every result is right, every number has come once and in order, no
// call that is to be restarted was interrupted, and handlers have seen only places in the program's
// own code.
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

namespace {

using Function = std::uint32_t (*)(std::uint32_t);

constexpr std::size_t function_size = 64;
constexpr std::uint32_t functions_a_round = 4096, functions_of_handlers = 65536;
// Of numbered signals, where their handling is slow.
constexpr std::uint32_t most_unanswered = 100;

struct Range {
    std::uintptr_t begin, end;
    bool holds(std::uintptr_t at) const { return at >= begin && at < end; }
};

std::vector<Range> own_code;
Range code_of_round;
char* code_of_handlers;
std::atomic<std::uint32_t> numbered, ticks;
std::atomic<unsigned> wrong_results, wrong_places, wrong_numbers, wrong_ends;
std::atomic<bool> finished;
pthread_t worker;
int asked[2], answered[2];

// f(x) = x + n odd ? (x + n) ^ 5n : (x + n) * (n | 1)
void generate(char* at, std::uint32_t n) {
    const auto put = [&at](std::initializer_list<unsigned char> bytes) {
        for (const auto byte : bytes) *at++ = static_cast<char>(byte);
    };
    const auto put_number = [&at](std::uint32_t number) {
        std::memcpy(at, &number, sizeof number);
        at += sizeof number;
    };
    put({0x8d, 0x87});  // lea n(%rdi), %eax
    put_number(n);
    put({0xa8, 0x01, 0x74, 0x06});  // test $1, %al; je over the next two
    put({0x35});                    // xor $5n, %eax
    put_number(5 * n);
    put({0xc3, 0x69, 0xc0});  // ret; imul $(n | 1), %eax, %eax
    put_number(n | 1);
    put({0xc3});
}

std::uint32_t expected(std::uint32_t n, std::uint32_t x) {
    const auto sum = x + n;
    return (sum & 1) != 0 ? sum ^ (5 * n) : sum * (n | 1);
}

char* generate_all(std::uint32_t count, std::uint32_t seed) {
    const auto size = count * function_size;
    auto* const memory = static_cast<char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED) std::abort();
    for (std::uint32_t i = 0; i < count; ++i) generate(memory + i * function_size, seed + i);
    if (mprotect(memory, size, PROT_READ | PROT_EXEC) != 0) std::abort();
    return memory;
}

void execute(char* code, std::uint32_t i, std::uint32_t seed) {
    const auto function = reinterpret_cast<Function>(code + i * function_size);
    const auto x = i * 2654435761U;
    if (function(x) != expected(seed + i, x)) ++wrong_results;
}

void check_place(void* context) {
    const auto at =
        static_cast<std::uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
    for (const auto& range : own_code)
        if (range.holds(at)) return;
    if (!code_of_round.holds(at)) ++wrong_places;
}

void execute_as_handler() {
    static std::atomic<std::uint32_t> next;
    execute(code_of_handlers, next++ % functions_of_handlers, 0);
}

void on_number(int, siginfo_t* info, void* context) {
    if (static_cast<std::uint32_t>(info->si_value.sival_int) != numbered) ++wrong_numbers;
    ++numbered;
    check_place(context);
    execute_as_handler();
}

void on_tick(int, siginfo_t*, void* context) {
    ++ticks;
    check_place(context);
    execute_as_handler();
}

void* send_numbers(void* a_second) {
    const timespec pause{0, 1'000'000'000 / *static_cast<const long*>(a_second)};
    for (std::uint32_t n = 0; !finished; ++n) {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
        while (n - numbered >= most_unanswered && !finished) usleep(100);
        sigval value;
        value.sival_int = static_cast<int>(n);
        if (pthread_sigqueue(worker, SIGRTMIN, value) != 0) std::abort();
    }
    return nullptr;
}

void* answer(void*) {
    char letter;
    while (read(asked[0], &letter, 1) == 1) {
        const timespec pause{0, 30'000};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
        if (write(answered[1], &letter, 1) != 1) std::abort();
    }
    return nullptr;
}

// One of a few calls; each ends as the manual says.
void call_system(std::uint32_t n) {
    const auto before = numbered + ticks;
    char letter = static_cast<char>(n), back = 0;
    switch (n % 4) {
        case 0:
            if (write(asked[1], &letter, 1) != 1 || read(answered[0], &back, 1) != 1 ||
                back != letter)
                ++wrong_ends;
            break;
        case 1: {
            const timespec nap{0, 20'000};
            timespec left{};
            const auto error = clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, &left);
            if (error != 0 && (error != EINTR || numbered + ticks == before)) ++wrong_ends;
            break;
        }
        case 2: {
            const timespec nap{0, 20'000};
            const auto ready = ppoll(nullptr, 0, &nap, nullptr);
            if (ready != 0 && (errno != EINTR || numbered + ticks == before)) ++wrong_ends;
            break;
        }
        default:
            if (getppid() <= 0) ++wrong_ends;
    }
}

void find_own_code() {
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void*) {
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const auto& part = info->dlpi_phdr[i];
                const auto begin = info->dlpi_addr + part.p_vaddr;
                if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0)
                    own_code.push_back({begin, begin + part.p_memsz});
            }
            return 0;
        },
        nullptr);
    const auto begin = reinterpret_cast<std::uintptr_t>(code_of_handlers);
    own_code.push_back({begin, begin + functions_of_handlers * function_size});
}

void handle(int signal, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    action.sa_sigaction = handler;
    sigaction(signal, &action, nullptr);
}

void do_round(std::uint32_t round) {
    const auto seed = round * 7919;
    auto* const code = generate_all(functions_a_round, seed);
    const auto begin = reinterpret_cast<std::uintptr_t>(code);
    code_of_round = {begin, begin + functions_a_round * function_size};
    for (std::uint32_t i = 0; i < functions_a_round; ++i) {
        execute(code, i, seed);
        if (i % 256 == 0) call_system(round + i / 256);
    }
    munmap(code, functions_a_round * function_size);
}

}  // namespace

int main(int argc, char** argv) {
    const auto rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 10;
    long a_second = argc > 2 ? std::atol(argv[2]) : 0;
    code_of_handlers = generate_all(functions_of_handlers, 0);
    find_own_code();
    worker = pthread_self();
    if (pipe(asked) != 0 || pipe(answered) != 0) return 1;
    pthread_t answering, sending;
    handle(SIGRTMIN, on_number);
    handle(SIGALRM, on_tick);
    // The worker alone is interrupted.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    pthread_create(&answering, nullptr, answer, nullptr);
    if (a_second != 0) pthread_create(&sending, nullptr, send_numbers, &a_second);
    sigemptyset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    if (a_second != 0) {
        const itimerval often{{0, 1'000'000 / a_second}, {0, 1'000'000 / a_second}};
        setitimer(ITIMER_REAL, &often, nullptr);
    }
    for (std::uint32_t round = 0; round < rounds; ++round) do_round(round);
    finished = true;
    if (a_second != 0) pthread_join(sending, nullptr);
    close(asked[1]);
    pthread_join(answering, nullptr);
    if (wrong_results + wrong_places + wrong_numbers + wrong_ends == 0) {
        std::puts("fine");
        return 0;
    }
    std::printf("%u results, %u places, %u numbers of signals and %u ends of calls are wrong\n",
                wrong_results.load(), wrong_places.load(), wrong_numbers.load(), wrong_ends.load());
    return 1;
}
