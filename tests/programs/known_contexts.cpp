// Calls whose numbers are derived by hand in calling_contexts.py: recursion, tail calls, longjmp,
// exceptions, signal handlers, threads, calls of another module.
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <thread>

extern "C" {
void leaf();               // 5 instructions
void recurse(long depth);  // 5 a level, and 3 in the deepest
void tail_caller();        // 3, and then those of leaf

asm(R"(
        .text
        .globl leaf, recurse, tail_caller
        .type leaf, @function
leaf:   nop
        nop
        nop
        nop
        ret
        .size leaf, . - leaf
        .type recurse, @function
recurse: test %rdi, %rdi
        jz 1f
        dec %rdi
        call recurse
1:      ret
        .size recurse, . - recurse
        .type tail_caller, @function
tail_caller: nop
        nop
        jmp leaf
        .size tail_caller, . - tail_caller
)");

#define APART [[gnu::noinline, gnu::noclone, gnu::no_icf]]

static std::jmp_buf place;

APART void jumps() {
    leaf();
    std::longjmp(place, 1);
}
APART void calls_who_jumps() {
    jumps();
    leaf();  // never
}
APART void with_longjmp() {
    if (setjmp(place) == 0) calls_who_jumps();
    leaf();
    leaf();
}

APART void throws() {
    leaf();
    throw 1;
}
APART void calls_who_throws() {
    throws();
    leaf();  // never
}
APART void with_exception() {
    try {
        calls_who_throws();
    } catch (int) {
        leaf();
    }
    leaf();
}

APART void handler(int) {
    leaf();
    leaf();
    leaf();
}
APART void with_signal() {
    leaf();
    raise(SIGUSR1);
    leaf();
}

APART void in_thread() {
    leaf();
    leaf();
    leaf();
    leaf();
}

APART void with_library() {
    for (int i = 0; i < 3; ++i) getppid();
    leaf();
}

APART void with_recursion() {
    recurse(6);
    leaf();
}

APART void with_tail_call() {
    tail_caller();
    leaf();
}
}

int main() {
    std::signal(SIGUSR1, handler);
    with_recursion();
    with_tail_call();
    with_longjmp();
    with_exception();
    with_signal();
    with_library();
    std::thread(in_thread).join();
}
