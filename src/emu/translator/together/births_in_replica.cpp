// Threads that begin and end in a replica.
#include <linux/sched.h>
#include <sys/syscall.h>

#include <algorithm>

#include "emu/translator/guest_registers.h"
#include "emu/translator/together/replica_threads.h"
#include "proc/process_info.h"

namespace shadowprof::emu::translator {

using ptrace::Registers;

// True if the call needs no other service.
bool ReplicaThreads::serve_thread_call(Member& member, std::uint64_t number) {
    switch (number) {
        case SYS_clone:
        case SYS_clone3:
            return members_.size() < most_started && alive_ < most && start_thread(member);
        case SYS_exit:
            return end_thread(member);
        // Only a thread that has just been started calls this. Within the cache nothing is a
        // restartable sequence, but it is told which processor it runs on.
        case SYS_rseq: {
            const auto& raw = member.native.raw;
            const auto result = replica_.call(SYS_rseq, {raw.rdi, raw.rsi, raw.rdx, raw.r10});
            if (result) wake(member.number, *result);
            return result.has_value();
        }
        default:
            return false;
    }
}

// What clone(2) was asked for is done here, since the new thread is not to run before it has been
// prepared, and may be traced by nobody else.
bool ReplicaThreads::start_thread(Member& member) {
    const auto& raw = member.native.raw;
    clone_args asked{};
    if (raw.orig_rax == SYS_clone3) {
        const auto size = std::min<std::uint64_t>(raw.rsi, sizeof asked);
        if (replica_.memory().read(
                {raw.rdi}, std::as_writable_bytes(std::span{&asked, 1}).first(size)) != size)
            return false;
    } else {
        asked.flags = raw.rdi;
        asked.stack = raw.rsi;
        asked.parent_tid = raw.rdx;
        asked.child_tid = raw.r10;
        asked.tls = raw.r8;
    }
    constexpr std::uint64_t necessary =
                                CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD,
                            possible = necessary | CLONE_SYSVSEM | CLONE_SETTLS |
                                       CLONE_PARENT_SETTID | CLONE_CHILD_SETTID |
                                       CLONE_CHILD_CLEARTID | CLONE_DETACHED;
    if ((asked.flags & necessary) != necessary || (asked.flags & ~possible) != 0) return false;
    const auto tid = replica_.add_thread();
    const auto area = tid ? cache_.add_area(guest_) : std::nullopt;
    if (!area) return false;
    Thread started{*tid, *area, nullptr, member.native, false};
    auto& its = started.native.raw;
    its.rax = 0;
    its.rcx = its.rip;
    its.r11 = its.eflags;
    its.orig_rax = no_system_call;
    if (asked.stack != 0) its.rsp = asked.stack + asked.stack_size;
    if ((asked.flags & CLONE_SETTLS) != 0) its.fs_base = asked.tls;
    const auto number = proc::own_number_of(*tid);
    const auto put = [&](std::uint64_t flag, std::uint64_t at) {
        if ((asked.flags & flag) != 0)
            replica_.memory().write({at}, std::as_bytes(std::span{&number, 1}));
    };
    put(CLONE_PARENT_SETTID, asked.parent_tid);
    put(CLONE_CHILD_SETTID, asked.child_tid);
    services_.serves(member.number);
    services_.starts(number);
    started.recording = join_(started);
    ++alive_;
    auto& added = members_.emplace_back(started, members_.size());
    added.is_started_here = true;
    if ((asked.flags & CLONE_CHILD_CLEARTID) != 0) added.number_at = {asked.child_tid};
    added.time.emplace(replica_.pid(), before_.of_fault, added.tid);
    enter(added);
    wake(member.number, number);
    return true;
}

bool ReplicaThreads::end_thread(Member& member) {
    const auto at = number_of(member);
    constexpr std::uint32_t none = 0;
    if (!at || !replica_.memory().write(*at, std::as_bytes(std::span{&none, 1}))) return false;
    finish(member);
    member.estimate = member.time->estimate(member.recording->work(), member.stops);
    member.reason = "end of thread";
    // The first one of a process stays until all have ended.
    if (member.tid != replica_.pid()) {
        member.recording->end_stream();
        cache_.give_area_back(guest_, member.area);
        replica_.end_thread();
        member.has_ended = true;
        member.tid = 0;
        --alive_;
    }
    for (const auto number : sleepers_.wake_all(*at)) wake(number, 0);
    return true;
}

// Of a thread that the program had already only the C library knows: glibc keeps the number in the
// thread's own structure, to which fs points.
std::optional<Address> ReplicaThreads::number_of(const Member& member) const {
    if (member.is_started_here)
        return member.number_at == Address{} ? std::nullopt : std::optional{member.number_at};
    constexpr std::uint64_t in_glibc = 0x2d0;
    const Address at{member.native.raw.fs_base + in_glibc};
    const auto number = replica_.memory().read_as<pid_t>(at);
    return number == services_.own_number(member.number) ? std::optional{at} : std::nullopt;
}

}  // namespace shadowprof::emu::translator
