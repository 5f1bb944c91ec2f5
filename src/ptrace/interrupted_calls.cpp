#include "ptrace/interrupted_calls.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace shadowprof::ptrace {
namespace {

// signal(7), "Interruption of system calls and library functions by stop signals", and what has
// come since.
constexpr std::uint64_t calls[] = {
    SYS_epoll_wait,       //
    SYS_epoll_pwait,      //
    SYS_epoll_pwait2,     //
    SYS_semop,            //
    SYS_semtimedop,       //
    SYS_rt_sigtimedwait,  //
    SYS_msgrcv,           // before Linux 3.16
    SYS_msgsnd,           // before Linux 3.16
    SYS_io_getevents,     //
    SYS_io_pgetevents,    //
    SYS_io_uring_enter,   //
    SYS_futex,            // before Linux 2.6.22
    SYS_read,             // of sockets with SO_RCVTIMEO, of inotify before 3.8; of FUSE files
    SYS_readv,            //
    SYS_recvfrom,         //
    SYS_recvmsg,          //
    SYS_recvmmsg,         //
    SYS_accept,           //
    SYS_accept4,          //
    SYS_write,            // to sockets with SO_SNDTIMEO
    SYS_writev,           //
    SYS_sendto,           //
    SYS_sendmsg,          //
    SYS_sendmmsg,         //
    SYS_connect,          //
};

}  // namespace

bool may_answer_eintr_unhandled(std::uint64_t system_call) {
    return std::find(std::begin(calls), std::end(calls), system_call) != std::end(calls);
}

bool answered_eintr(const Registers& registers) {
    return registers.in_system_call() && registers.result() == -EINTR &&
           may_answer_eintr_unhandled(registers.raw.orig_rax);
}

void issue_again(Registers& registers) {
    registers.raw.rax = registers.raw.orig_rax;
    registers.raw.rip -= system_call_length;
}

void answer_eintr(Registers& registers) {
    registers.raw.rax = static_cast<std::uint64_t>(-EINTR);
    registers.raw.rip += system_call_length;
}

}  // namespace shadowprof::ptrace
