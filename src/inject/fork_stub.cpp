// Everything is done with registers and the slot (rbx) alone, for the stack is the program's. What
// happens at each entry, with all signals blocked from the first system call on:
//
//   the program's thread                  the intermediary
//     clone, sharing memory --------------> close everything
//     wait until that has ended             clone() ----> newborn
//     complete = number               <---- exit
//     rt_sigreturn(frame)
//
//   newborn: setpgid(); pid = getpid(); newborn = number; wake who waits for that; sleep; exit
//
// The newborn has a process group of its own. Signals for the program's group are not for it: they
// would queue up there. And a group that the program has left must not live on through the newborn.
//
// Whose child the intermediary is depends on whose child the newborn shall be. fork_sibling: both
// are siblings of the program (CLONE_PARENT), and the profiler reaps them. fork_grandchild: the
// intermediary is the program's child, and its end makes the newborn an orphan; it has exit signal
// 0, so that no plain wait of the program's sees it, and the program's thread reaps it. It is a
// process and no thread of the program in either case: when a process closes any descriptor of a
// message queue, the kernel forgets what notification (mq_notify) that process asked for.
//
// The thread and the intermediary share memory and, until the intermediary has a table of its own,
// the table of descriptors. They share no folders (CLONE_FS) and no handlers (CLONE_SIGHAND): a
// process that shares them may not change namespaces, nor unshare(2) much; and handlers would be
// shared until the intermediary is reaped, when the program is long back.
//
// The signals are blocked already if the profiler is alive. CLONE_UNTRACED: a newborn must not
// become a tracee of the thread's tracer.
//
// The thread does not wait in the kernel, as it would for vfork(2). Waking it takes an interrupt
// from one processor to another, under a hypervisor twenty microseconds and more. And where the
// thread's processor is idle meanwhile, the kernel sends the newborn there, to run before it. So
// the thread looks for a while whether the intermediary is at work, on another processor, and then
// whether it has ended (the kernel says so in the word that CLONE_CHILD_CLEARTID is about); only
// then does it sleep until the end.
//
// The intermediary exists because of the descriptors. A newborn with a table of its own would keep
// open what the program closes now: a pipe's reader would wait for the newborn, a lock would stay,
// a program just written could not be executed. With CLONE_FILES the newborn has no table of its
// own; but the kernel makes an empty table as a copy of the first 64 descriptors that it then
// closes. In between they are open twice: for 5 us, or for milliseconds if the processor is taken
// away just there. So the emptying is done while the program's thread waits, by the intermediary,
// whose table the newborn can share.
#include "inject/fork_stub.h"

#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>

#include "inject/tuning.h"

#define TEXT_OF(token) #token
#define TEXT(token) TEXT_OF(token)
#define AT(field, offset) static_assert(offsetof(shadowprof::inject::StubSlot, field) == (offset))
#define NUMBER 0
#define COMPLETE 4
#define NEWBORN 8
#define PID 12
#define INTERMEDIARY 16
#define BEGUN 20
#define TO_REAP 24
#define FRAME 64
AT(number, NUMBER);
AT(complete, COMPLETE);
AT(newborn, NEWBORN);
AT(pid, PID);
AT(intermediary, INTERMEDIARY);
AT(begun, BEGUN);
AT(to_reap, TO_REAP);
AT(frame, FRAME);

#define PATIENCE 1
static_assert(PATIENCE == shadowprof::inject::tuning::newborn_patience.count());

// Numbers that the assembler cannot have from headers, which spell them as C expressions.
#define SIBLING_FLAGS 0x00808400
static_assert(SIBLING_FLAGS == (CLONE_PARENT | CLONE_FILES | CLONE_UNTRACED));
#define CHILD_INTERMEDIARY_FLAGS 0x00b00500
static_assert(CHILD_INTERMEDIARY_FLAGS == (CLONE_VM | CLONE_FILES | CLONE_UNTRACED |
                                           CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID));
#define SIBLING_INTERMEDIARY_FLAGS 0x00b08500
static_assert(SIBLING_INTERMEDIARY_FLAGS == (CHILD_INTERMEDIARY_FLAGS | CLONE_PARENT));
#define GRANDCHILD_FLAGS 0x00800400
static_assert(GRANDCHILD_FLAGS == (CLONE_FILES | CLONE_UNTRACED));
#define EVERYTHING 0xffffffff
#define LEAVE_THE_TABLE 2
static_assert(LEAVE_THE_TABLE == CLOSE_RANGE_UNSHARE);
#define WAIT_FOR_ALL 0x40000000
static_assert(WAIT_FOR_ALL == __WALL);
#define LOOK_FOR_ALL 0x40000001
static_assert(LOOK_FOR_ALL == (__WALL | WNOHANG));
#define ASK_WHETHER_IT_ADOPTS 37
static_assert(ASK_WHETHER_IT_ADOPTS == PR_GET_CHILD_SUBREAPER);
#define IT_ADOPTS -125
static_assert(IT_ADOPTS == -ECANCELED);  // which clone(2) does not return

#define LOOKS_FOR_BEGINNING 2000
static_assert(LOOKS_FOR_BEGINNING == shadowprof::inject::tuning::looks_for_beginning);
#define LOOKS_FOR_END 20000
static_assert(LOOKS_FOR_END == shadowprof::inject::tuning::looks_for_end);
#define LOOKS_FOR_ZOMBIE 100
static_assert(LOOKS_FOR_ZOMBIE == shadowprof::inject::tuning::looks_for_zombie);

#define CALL(number) "mov $" TEXT(number) ", %eax; syscall\n"
#define CLOSE_EVERYTHING                                           \
    "xor %edi, %edi; mov $" TEXT(EVERYTHING) ", %esi; mov $" TEXT( \
        LEAVE_THE_TABLE) ", %edx\n" CALL(SYS_close_range)
#define BLOCK_EVERY_SIGNAL                                                         \
    "mov $2, %edi; lea shadowprof_stub_every_signal(%rip), %rsi; xor %edx, %edx\n" \
    "mov $8, %r10d\n" CALL(SYS_rt_sigprocmask)
#define SET_TO_NUMBER(word) "mov " TEXT(NUMBER) "(%rbx), %ecx; mov %ecx, " TEXT(word) "(%rbx)\n"

// clang-format off

// The flags are in edi. They say whether the kernel writes down the tid.
#define CLONE                                         \
    "    xor %esi, %esi\n"                            \
    "    lea " TEXT(INTERMEDIARY) "(%rbx), %rdx\n"         \
    "    mov %rdx, %r10\n"                            \
    "    xor %r8d, %r8d\n"                            \
    CALL(SYS_clone)

// Waits for the intermediary, and yields first in case it waits for this very processor.
#define AWAIT_ITS_END                                 \
    CALL(SYS_sched_yield)                             \
    "    mov " TEXT(NUMBER) "(%rbx), %ecx\n"          \
    "    mov $" TEXT(LOOKS_FOR_BEGINNING) ", %ebp\n"  \
    "11: cmp %ecx, " TEXT(BEGUN) "(%rbx)\n"           \
    "    je 12f\n"                                    \
    "    pause\n"                                     \
    "    dec %ebp\n"                                  \
    "    jnz 11b\n"                                   \
    "    jmp 14f\n"                                   \
    "12: mov $" TEXT(LOOKS_FOR_END) ", %ebp\n"        \
    "13: cmpl $0, " TEXT(INTERMEDIARY) "(%rbx)\n"          \
    "    je 15f\n"                                    \
    "    pause\n"                                     \
    "    dec %ebp\n"                                  \
    "    jnz 13b\n"                                   \
    "14: mov " TEXT(INTERMEDIARY) "(%rbx), %edx\n"         \
    "    test %edx, %edx\n"                           \
    "    jz 15f\n"                                    \
    "    lea " TEXT(INTERMEDIARY) "(%rbx), %rdi\n"         \
    "    xor %esi, %esi\n" /* FUTEX_WAIT */           \
    "    xor %r10d, %r10d\n"                          \
    CALL(SYS_futex)                                   \
    "    jmp 14b\n"                                   \
    "15:\n"
asm(".pushsection .rodata.shadowprof_stub, \"a\"\n"
    ".balign 16\n"
    "shadowprof_stub_begin:"
    "    syscall\n"
    "    int3\n"

    // What the newborn's end depends on stands here, where the program cannot write.
    ".balign 8\n"
    "shadowprof_stub_every_signal: .quad -1\n"
    "shadowprof_stub_patience: .quad " TEXT(PATIENCE) ", 0\n" // a timespec

    "shadowprof_stub_fork_sibling:"
    BLOCK_EVERY_SIGNAL
    "    mov $" TEXT(SIBLING_FLAGS) ", %ebp\n"
    "    mov $" TEXT(SIBLING_INTERMEDIARY_FLAGS) ", %edi\n"
    CLONE
    "    test %eax, %eax\n"
    "    jz 1f\n"
    "    js 3f\n"
    AWAIT_ITS_END
    "    jmp 4f\n"

    "shadowprof_stub_fork_grandchild:"
    BLOCK_EVERY_SIGNAL
    // The program may have begun to adopt orphans since the area was put in.
    "    mov $" TEXT(ASK_WHETHER_IT_ADOPTS) ", %edi\n"
    "    lea " TEXT(INTERMEDIARY) "(%rbx), %rsi\n"
    CALL(SYS_prctl)
    "    mov $" TEXT(IT_ADOPTS) ", %eax\n"
    "    cmpl $0, " TEXT(INTERMEDIARY) "(%rbx)\n"
    "    jne 3f\n"
    "    mov $" TEXT(GRANDCHILD_FLAGS) ", %ebp\n"
    "    mov $" TEXT(CHILD_INTERMEDIARY_FLAGS) ", %edi\n"
    CLONE
    "    test %eax, %eax\n"
    "    jz 1f\n"
    "    js 3f\n"
    "    mov %eax, %r12d\n"
    AWAIT_ITS_END
    "    mov $" TEXT(LOOKS_FOR_ZOMBIE) ", %ebp\n"
    "    mov $" TEXT(LOOK_FOR_ALL) ", %edx\n"
    "21: mov %r12d, %edi\n"
    "    xor %esi, %esi\n"
    "    xor %r10d, %r10d\n"
    CALL(SYS_wait4)
    "    test %eax, %eax\n"
    "    jnz 4f\n"
    "    dec %ebp\n"
    "    jnz 21b\n"
    "    mov $" TEXT(WAIT_FOR_ALL) ", %edx\n"
    "    jmp 21b\n"

    "1:"  // the intermediary
    SET_TO_NUMBER(BEGUN)
    CLOSE_EVERYTHING
    CALL(SYS_getpid)
    "    mov %eax, " TEXT(TO_REAP) "(%rbx)\n"
    "    mov %ebp, %edi\n"
    CLONE
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
    "    xor %edi, %edi\n"
    "    xor %esi, %esi\n"
    CALL(SYS_setpgid)
    CALL(SYS_getpid)
    "    mov %eax, " TEXT(PID) "(%rbx)\n"
    SET_TO_NUMBER(NEWBORN)
    "    lea " TEXT(NEWBORN) "(%rbx), %rdi\n"
    "    mov $1, %esi\n"  // FUTEX_WAKE
    "    mov $1, %edx\n"
    CALL(SYS_futex)
    "    lea shadowprof_stub_patience(%rip), %rdi\n"
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

namespace shadowprof::inject {

const std::int32_t adopts_orphans = IT_ADOPTS;
const CloneFlags sibling_clone_flags{SIBLING_INTERMEDIARY_FLAGS, SIBLING_FLAGS};
const CloneFlags grandchild_clone_flags{CHILD_INTERMEDIARY_FLAGS, GRANDCHILD_FLAGS};

Stub stub() {
    const auto at = [](const std::byte* label) {
        return static_cast<std::size_t>(label - shadowprof_stub_begin);
    };
    return {{shadowprof_stub_begin, at(shadowprof_stub_end)},
            at(shadowprof_stub_fork_sibling),
            at(shadowprof_stub_fork_grandchild)};
}

}  // namespace shadowprof::inject
