// Holds values in every register of AVX-512, or in AMX's tiles, through computing, system calls,
// signals whose handler takes the same registers, and fork; and computes with the masks and
// vectors. It compares what it held, and prints a sum of what it computed.
//
//   wide-state vectors|tiles ROUNDS      exits with 77 where the processor or the system has none
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { threads = 2, turns = 40000, skipped = 77 };

struct state {
    uint64_t vectors[32][8];
    uint64_t masks[8];
} __attribute__((aligned(64)));

// 1,024 bytes each, 16 rows of 64; and their configuration.
struct tiles {
    unsigned char rows[8][1024];
    unsigned char configuration[64];
} __attribute__((aligned(64)));

// Loads, goes round `turns` times with a getppid(2) now and then, makes the system call `number`,
// goes round again, and stores. Returns what the call returned.
long hold_vectors(const void* in, void* out, uint64_t turns, long number);
long hold_tiles(const void* in, void* out, uint64_t turns, long number);
// Changes the state `turns` times.
void turn_vectors(struct state* state, uint64_t turns);
void clear_vectors(void);

#define ALL_VECTORS \
    "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"
#define ALL_EIGHT "0,1,2,3,4,5,6,7"
// Of the kernel's making, a system call changes rcx and r11 only.
#define ROUND(label)             \
#label                       \
        ": test $0x1fff, %r8d\n" \
        "    jnz 3f\n"           \
        "    mov $110, %eax\n"   \
        "    syscall\n"          \
        "3:  dec %r8\n"          \
        "    jnz " #label "b\n"
#define HOLD \
    "    mov %rdx, %r8\n"             \
    "    mov %rcx, %r9\n" ROUND(1)    \
    "    mov %r9, %rax\n"             \
    "    syscall\n"                   \
    "    mov %rax, %r10\n"            \
    "    mov %rdx, %r8\n" ROUND(2)    \
    "    mov %r10, %rax\n"
// clang-format off
#define LOAD_VECTORS(at)                                                  \
    ".irp n," ALL_VECTORS "\n vmovdqa64 64*\\n(" at "), %zmm\\n\n .endr\n" \
    ".irp n," ALL_EIGHT "\n kmovq 2048+8*\\n(" at "), %k\\n\n .endr\n"
#define STORE_VECTORS(at)                                                 \
    ".irp n," ALL_VECTORS "\n vmovdqa64 %zmm\\n, 64*\\n(" at ")\n .endr\n" \
    ".irp n," ALL_EIGHT "\n kmovq %k\\n, 2048+8*\\n(" at ")\n .endr\n"
asm(".text\n"
    "hold_vectors:\n"
    LOAD_VECTORS("%rdi") HOLD STORE_VECTORS("%rsi")
    "    vzeroupper\n"
    "    ret\n"

    "turn_vectors:\n"
    LOAD_VECTORS("%rdi")
    "1:  vpaddq %zmm17, %zmm0, %zmm0{%k1}\n"
    "    vprolq $13, %zmm0, %zmm31{%k2}\n"
    "    vpxorq %zmm31, %zmm16, %zmm16{%k3}{z}\n"
    "    vpermq %zmm16, %zmm0, %zmm17\n"
    "    vpaddd (%rdi){1to16}, %zmm17, %zmm8{%k4}\n"
    "    vpcmpuq $1, %zmm8, %zmm0, %k5\n"
    "    kxorq %k5, %k1, %k1\n"
    "    kaddq %k1, %k2, %k2\n"
    "    kxorq %k2, %k3, %k3\n"
    "    korq %k5, %k3, %k3\n"
    "    kshiftrq $1, %k4, %k4\n"
    "    kxnorq %k4, %k2, %k4\n"
    "    vpaddq %zmm8, %zmm16, %zmm16\n"
    "    dec %rsi\n"
    "    jnz 1b\n"
    STORE_VECTORS("%rdi")
    "    vzeroupper\n"
    "    ret\n"

    "clear_vectors:\n"
    ".irp n," ALL_VECTORS "\n vpxorq %zmm\\n, %zmm\\n, %zmm\\n\n .endr\n"
    ".irp n," ALL_EIGHT "\n kxorq %k\\n, %k\\n, %k\\n\n .endr\n"
    "    ret\n"

    "hold_tiles:\n"
    "    ldtilecfg 8192(%rdi)\n"
    "    mov $64, %r11d\n"
    ".irp n," ALL_EIGHT "\n tileloadd 1024*\\n(%rdi,%r11,1), %tmm\\n\n .endr\n"
    HOLD
    "    mov $64, %r11d\n"
    ".irp n," ALL_EIGHT "\n tilestored %tmm\\n, 1024*\\n(%rsi,%r11,1)\n .endr\n"
    "    sttilecfg 8192(%rsi)\n"
    "    tilerelease\n"
    "    ret\n");
// clang-format on

static int rounds;

static void fill(void* bytes, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; ++i) ((unsigned char*)bytes)[i] = (unsigned char)rand_r(&seed);
}

static void fail(const char* what) {
    printf("%s\n", what);
    exit(1);
}

// Of what is held in parent and child, one of which forks where it holds it.
static void hold(long (*function)(const void*, void*, uint64_t, long), const void* in, void* out,
                 size_t size, long number) {
    memset(out, 0, size);
    const long result = function(in, out, turns, number);
    const int differs = memcmp(in, out, size) != 0;
    if (number == SYS_fork) {
        if (result == 0) _exit(differs);
        int status = 0;
        if (waitpid((pid_t)result, &status, 0) != result || status != 0) fail("wrong in a child");
    }
    if (differs) fail("wrong");
}

static void* with_vectors(void* number) {
    struct state in, out, turning;
    fill(&in, sizeof in, 7 * (unsigned)(uintptr_t)number);
    turning = in;
    for (int i = 0; i < rounds; ++i) {
        hold(hold_vectors, &in, &out, sizeof in, i % 10 == 0 ? SYS_fork : SYS_getpid);
        turn_vectors(&turning, turns);
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof turning / 8; ++i) sum = sum * 31 + ((uint64_t*)&turning)[i];
    return (void*)sum;
}

static void* with_tiles(void* number) {
    static struct tiles all[threads][2];
    struct tiles* const in = all[(uintptr_t)number - 1];
    fill(in->rows, sizeof in->rows, 7 * (unsigned)(uintptr_t)number);
    in->configuration[0] = 1;  // the palette; then bytes a row, as words, and rows
    for (int i = 0; i < 8; ++i) {
        in->configuration[16 + 2 * i] = 64;
        in->configuration[48 + i] = 16;
    }
    // Children have no tiles (the kernel says that calls need not keep them).
    for (int i = 0; i < rounds; ++i) hold(hold_tiles, in, in + 1, sizeof *in, SYS_getpid);
    return NULL;
}

static int may_have_tiles(void) {
    enum { ask_for_component = 0x1023, tile_data = 18 };
    return syscall(SYS_arch_prctl, ask_for_component, tile_data) == 0;
}

static void take_vectors(int signal) {
    (void)signal;
    clear_vectors();
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const int are_tiles = strcmp(argv[1], "tiles") == 0;
    rounds = atoi(argv[2]);
    if (are_tiles ? !may_have_tiles()
                  : !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512f"))
        return skipped;
    if (!are_tiles) {
        struct sigaction action = {.sa_handler = take_vectors, .sa_flags = SA_RESTART};
        sigaction(SIGALRM, &action, NULL);
        const struct itimerval often = {{0, 3000}, {0, 3000}};
        setitimer(ITIMER_REAL, &often, NULL);
    }
    pthread_t started[threads];
    for (uintptr_t i = 0; i < threads; ++i)
        pthread_create(&started[i], NULL, are_tiles ? with_tiles : with_vectors, (void*)(i + 1));
    for (int i = 0; i < threads; ++i) {
        void* sum;
        pthread_join(started[i], &sum);
        printf("%lx\n", (unsigned long)(uintptr_t)sum);
    }
    return 0;
}
