// A program that would notice if its thread had been used to fork a replica. Until SIGTERM it fills
// every register with known values, computes for a while without touching them, and compares; and
// looks at its signal mask, alternate stack, descriptors and children. `birth-target [THREADS]`.
// It says "ready", then what it noticed, and exits 0 if that is nothing.
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> stop_requested{false};
std::atomic<int> children_signalled{0};
std::atomic<bool> noticed{false};

void on_term(int) {
    stop_requested = true;
}
void on_child(int) {
    ++children_signalled;
}

void notice(const char* what) {
    if (!noticed.exchange(true)) printf("%s\n", what);
}

struct alignas(64) State {
    std::array<std::uint64_t, 16> general{};  // rsp excepted
    std::array<std::uint64_t, 2> unused{};
    std::uint64_t flags = 0;
    std::array<std::uint64_t, 8> masks{};
    std::uint64_t count = 0;
    alignas(64) std::array<std::array<std::uint64_t, 8>, 32> vectors{};
};

extern "C" void hold_state(const State* in, State* out, std::uint64_t* counter, int width);

// hold_state loads everything from `in`, counts `counter` down to zero with the direction flag set,
// and stores everything into `out`.
#define LOAD(reg, n) "mov " #n "*8(%rdi), %" #reg "\n"
#define STORE(reg, n) "mov %" #reg ", " #n "*8(%rdi)\n"
// clang-format off
asm(".text\n"
    ".set masks_at, 19*8\n"
    ".set flags_at, 18*8\n"
    ".set vectors_at, 256\n"
    "hold_state:\n"
    "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
    "push %rsi\n"             // out
    "push %rdx\n"             // counter
    "push %rcx\n"             // width
    "cmp $512, %ecx; jne 1f\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "vmovdqa64 vectors_at+64*\\n(%rdi), %zmm\\n\n"
    ".endr\n"
    ".irp n,0,1,2,3,4,5,6,7\n"
    "kmovw masks_at+8*\\n(%rdi), %k\\n\n"
    ".endr\n"
    "jmp 2f\n"
    "1: .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "movdqa vectors_at+64*\\n(%rdi), %xmm\\n\n"
    ".endr\n"
    "2:\n"
    LOAD(rax, 0) LOAD(rbx, 1) LOAD(rcx, 2) LOAD(rsi, 4) LOAD(rbp, 6)
    LOAD(r8, 8) LOAD(r9, 9) LOAD(r10, 10) LOAD(r11, 11) LOAD(r12, 12) LOAD(r13, 13) LOAD(r14, 14)
    LOAD(r15, 15) LOAD(rdi, 5)
    "mov 8(%rsp), %rdx\n"     // the counter's place is what rdx holds
    "std\n"
    "3: subq $1, (%rdx); jnz 3b\n"
    "pushf\n"
    "push %rdi\n"
    "mov 32(%rsp), %rdi\n"    // out
    STORE(rax, 0) STORE(rbx, 1) STORE(rcx, 2) STORE(rdx, 3) STORE(rsi, 4) STORE(rbp, 6)
    STORE(r8, 8) STORE(r9, 9) STORE(r10, 10) STORE(r11, 11) STORE(r12, 12) STORE(r13, 13)
    STORE(r14, 14) STORE(r15, 15)
    "pop 5*8(%rdi)\n"
    "pop flags_at(%rdi)\n"
    "cld\n"
    "cmpl $512, (%rsp); jne 4f\n"
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
    "vmovdqa64 %zmm\\n, vectors_at+64*\\n(%rdi)\n"
    ".endr\n"
    ".irp n,0,1,2,3,4,5,6,7\n"
    "kmovw %k\\n, masks_at+8*\\n(%rdi)\n"
    ".endr\n"
    "vzeroupper\n"
    "jmp 5f\n"
    "4: .irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
    "movdqa %xmm\\n, vectors_at+64*\\n(%rdi)\n"
    ".endr\n"
    "5: add $24, %rsp\n"
    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
    "ret\n");
// clang-format on
static_assert(offsetof(State, flags) == 18 * 8 && offsetof(State, masks) == 19 * 8 &&
              offsetof(State, vectors) == 256);

std::uint64_t random_word() {
    static thread_local std::uint64_t x = 88172645463325252u + static_cast<std::uint64_t>(gettid());
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

void check_registers() {
    const bool wide = __builtin_cpu_supports("avx512f") != 0;
    State in, out;
    std::uint64_t counter = 100'000;
    for (auto& word : in.general) word = random_word();
    in.general[3] = reinterpret_cast<std::uint64_t>(&counter);
    in.general[4] = random_word();
    for (auto& mask : in.masks) mask = wide ? random_word() & 0xffff : 0;
    for (std::size_t n = 0; n < (wide ? 32 : 16); ++n)
        for (std::size_t word = 0; word < (wide ? 8 : 2); ++word)
            in.vectors[n][word] = random_word();
    hold_state(&in, &out, &counter, wide ? 512 : 128);
    constexpr std::uint64_t direction = 0x400, zero = 0x40, carry = 1;
    if ((out.flags & direction) == 0 || (out.flags & zero) == 0 || (out.flags & carry) != 0)
        notice("the flags changed");
    out.general[7] = in.general[7];
    if (in.general != out.general) notice("general registers changed");
    if (in.masks != out.masks) notice("mask registers changed");
    if (in.vectors != out.vectors) notice("vector registers changed");
}

int count_of_descriptors() {
    int count = 0;
    DIR* directory = opendir("/proc/self/fd");
    while (directory && readdir(directory)) ++count;
    if (directory) closedir(directory);
    return count;
}

// `first` is the only thread that looks at what belongs to the process.
void work(bool first) {
    std::array<char, 65536> stack{};
    const stack_t alternate{stack.data(), 0, stack.size()};
    sigaltstack(&alternate, nullptr);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    sigaddset(&mask, SIGRTMIN + 1);
    if (!first) sigaddset(&mask, SIGTERM);
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    const int descriptors = first ? count_of_descriptors() : 0;
    if (first) {
        printf("ready\n");
        fflush(stdout);
    }
    for (int round = 0; !stop_requested; ++round) {
        check_registers();
        sigset_t now;
        pthread_sigmask(SIG_SETMASK, nullptr, &now);
        if (memcmp(&now, &mask, 8) != 0) notice("the signal mask changed");
        stack_t alternate_now{};
        sigaltstack(nullptr, &alternate_now);
        if (alternate_now.ss_sp != stack.data() || alternate_now.ss_size != stack.size() ||
            alternate_now.ss_flags != 0)
            notice("the alternate stack changed");
        if (!first) continue;
        if (waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD) notice("there is a child");
        if (round % 64 == 0 && count_of_descriptors() != descriptors)
            notice("descriptors came or went");
    }
    const stack_t disabled{nullptr, SS_DISABLE, 0};
    sigaltstack(&disabled, nullptr);
}

}  // namespace

int main(int argument_count, char** arguments) {
    signal(SIGTERM, on_term);
    signal(SIGCHLD, on_child);
    std::vector<std::thread> others;
    for (int n = 1; n < (argument_count > 1 ? std::atoi(arguments[1]) : 1); ++n)
        others.emplace_back(work, false);
    work(true);
    for (auto& other : others) other.join();
    if (children_signalled != 0) notice("SIGCHLD came");
    rusage children{};
    getrusage(RUSAGE_CHILDREN, &children);
    if (waitpid(-1, nullptr, __WALL | WNOHANG) != -1 || errno != ECHILD)
        notice("a child is left over");
    printf(noticed ? "not fine\n" : "fine\n");
    return noticed ? 1 : 0;
}
