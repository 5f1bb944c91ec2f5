// Everything is done with registers and the slot alone (rbx), for the stack is the program's. What
// happens at each entry, with all signals blocked from the first system call on:
//
//   fork_sibling                          fork_grandchild
//     clone(CLONE_PARENT) ----> newborn     vfork, sharing everything ----> close everything
//     complete = number                                                     clone() ----> newborn
//     rt_sigreturn(frame)                   wait until it has ended    <--- exit
//                                           complete = number, rt_sigreturn(frame)
//
//   newborn: close everything; pid = getpid(); newborn = number; wake who waits for that;
//            sleep; exit
//
// The signals are blocked already if the profiler is alive. CLONE_UNTRACED: a newborn must not
// become a tracee of the thread's tracer. The one between has exit signal 0, so that no plain wait
// of the program's sees it.
//
// CLONE_FILES: a table of descriptors of its own would keep open what the program closes now: a
// pipe's reader would wait for the newborn, a lock would stay, a program just written could not be
// executed. It leaves the table for an empty one, which the kernel makes as a copy of the first 64
// descriptors that it then closes. That takes 5 µs, and in between they are open twice. So it is
// done while the program's thread waits, where it waits anyway; to wait for a sibling would double
// the cost of forking one, which does it as its first act, with the program's priority: at the
// lowest one, three of a thousand newborns were held up in between for a tenth of a millisecond and
// more, at the program's one in a thousand.
#include "ptrace/nursery_stub.h"

#include <linux/close_range.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define TEXT_OF(token) #token
#define TEXT(token) TEXT_OF(token)
#define AT(field, offset) static_assert(offsetof(shadowprof::ptrace::Slot, field) == (offset))
#define EVERY_SIGNAL 0
#define PATIENCE 8
#define NUMBER 24
#define COMPLETE 28
#define NEWBORN 32
#define PID 36
#define FRAME 64
AT(every_signal, EVERY_SIGNAL);
AT(patience, PATIENCE);
AT(number, NUMBER);
AT(complete, COMPLETE);
AT(newborn, NEWBORN);
AT(pid, PID);
AT(frame, FRAME);

// Numbers that the assembler cannot have from headers, which spell them as C expressions.
#define SIBLING_FLAGS 0x00808400
static_assert(SIBLING_FLAGS == (CLONE_PARENT | CLONE_FILES | CLONE_UNTRACED));
#define BETWEEN_FLAGS 0x00804f00
static_assert(BETWEEN_FLAGS ==
              (CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_FS | CLONE_SIGHAND | CLONE_UNTRACED));
#define GRANDCHILD_FLAGS 0x00800400
static_assert(GRANDCHILD_FLAGS == (CLONE_FILES | CLONE_UNTRACED));
#define EVERYTHING 0xffffffff
#define LEAVE_THE_TABLE 2
static_assert(LEAVE_THE_TABLE == CLOSE_RANGE_UNSHARE);
#define WAIT_ALL 0x40000000
static_assert(WAIT_ALL == __WALL);

#define CALL(number) "mov $" TEXT(number) ", %eax; syscall\n"
#define CLOSE_EVERYTHING                                           \
    "xor %edi, %edi; mov $" TEXT(EVERYTHING) ", %esi; mov $" TEXT( \
        LEAVE_THE_TABLE) ", %edx\n" CALL(SYS_close_range)
#define BLOCK_EVERY_SIGNAL                                                                        \
    "mov $2, %edi; lea " TEXT(EVERY_SIGNAL) "(%rbx), %rsi; xor %edx, %edx; mov $8, %r10d\n" CALL( \
        SYS_rt_sigprocmask)
#define CLONE(flags) \
    "mov $" TEXT(    \
        flags) ", %edi; xor %esi, %esi; xor %edx, %edx; xor %r10d, %r10d; xor %r8d, %r8d\n" CALL(SYS_clone)
#define SET_TO_NUMBER(word) "mov " TEXT(NUMBER) "(%rbx), %ecx; mov %ecx, " TEXT(word) "(%rbx)\n"

// clang-format off
asm(".pushsection .rodata.shadowprof_stub, \"a\"\n"
    ".balign 16\n"
    "shadowprof_stub_begin:"
    "    syscall\n"
    "    int3\n"

    "shadowprof_stub_fork_sibling:"
    BLOCK_EVERY_SIGNAL
    CLONE(SIBLING_FLAGS)
    "    test %eax, %eax\n"
    "    jz 5f\n"
    "    js 3f\n"
    "    jmp 4f\n"

    "shadowprof_stub_fork_grandchild:"
    BLOCK_EVERY_SIGNAL
    CLONE(BETWEEN_FLAGS)
    "    test %eax, %eax\n"
    "    jz 1f\n"
    "    js 3f\n"
    "    mov %eax, %edi\n"
    "    xor %esi, %esi\n"
    "    mov $" TEXT(WAIT_ALL) ", %edx\n"
    "    xor %r10d, %r10d\n"
    CALL(SYS_wait4)
    "    jmp 4f\n"

    "1:"  // the one between
    CLOSE_EVERYTHING
    CLONE(GRANDCHILD_FLAGS)
    "    test %eax, %eax\n"
    "    jz 5f\n"
    "    jns 2f\n"
    "    mov %eax, " TEXT(PID) "(%rbx)\n"
    SET_TO_NUMBER(NEWBORN)
    "2:  xor %edi, %edi\n"
    CALL(SYS_exit)

    "3:"  // there is no newborn
    "    mov %eax, " TEXT(PID) "(%rbx)\n"
    SET_TO_NUMBER(NEWBORN)

    "4:"  // back to the program
    SET_TO_NUMBER(COMPLETE)
    "    lea " TEXT(FRAME) "(%rbx), %rsp\n"
    CALL(SYS_rt_sigreturn)

    "5:"  // the newborn
    CLOSE_EVERYTHING
    CALL(SYS_getpid)
    "    mov %eax, " TEXT(PID) "(%rbx)\n"
    SET_TO_NUMBER(NEWBORN)
    "    lea " TEXT(NEWBORN) "(%rbx), %rdi\n"
    "    mov $1, %esi\n"  // FUTEX_WAKE
    "    mov $1, %edx\n"
    CALL(SYS_futex)
    "    lea " TEXT(PATIENCE) "(%rbx), %rdi\n"
    "    xor %esi, %esi\n"
    CALL(SYS_nanosleep)
    "    xor %edi, %edi\n"
    CALL(SYS_exit_group)
    "shadowprof_stub_end:\n"
    ".popsection\n");
// clang-format on

extern "C" {
[[gnu::visibility("hidden")]] extern const std::byte shadowprof_stub_begin[];
[[gnu::visibility("hidden")]] extern const std::byte shadowprof_stub_fork_sibling[];
[[gnu::visibility("hidden")]] extern const std::byte shadowprof_stub_fork_grandchild[];
[[gnu::visibility("hidden")]] extern const std::byte shadowprof_stub_end[];
}

namespace shadowprof::ptrace {

const unsigned long sibling_clone_flags = SIBLING_FLAGS;
const unsigned long grandchild_clone_flags = GRANDCHILD_FLAGS;

Stub stub() {
    const auto at = [](const std::byte* label) {
        return static_cast<std::size_t>(label - shadowprof_stub_begin);
    };
    return {{shadowprof_stub_begin, at(shadowprof_stub_end)},
            at(shadowprof_stub_fork_sibling),
            at(shadowprof_stub_fork_grandchild)};
}

}  // namespace shadowprof::ptrace
