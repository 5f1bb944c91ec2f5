// A replica: a forked copy of the target that belongs to us, with the one thread that forked it.
//
// A replica is held by the thread of the profiler that took it, which may be any: replicas are not
// the Tracer's business, and what happens to them never keeps the target waiting. It dies with the
// thread that holds it (PTRACE_O_EXITKILL is in force before any code of the program can run in
// it). Its system calls stop before they are executed (PTRACE_SYSEMU): others decide what becomes
// of them.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "inject/fork_site.h"
#include "proc/memory.h"
#include "ptrace/registers.h"

namespace shadowprof::inject {

class Replica {
  public:
    // Waits for the newborn and takes hold of it; nothing and `why` if there is none. The replica
    // is stopped where the thread that forked it was: with the same registers and the same
    // everything, but all signals are blocked.
    static std::unique_ptr<Replica> take(ForkSite& fork_site, const PendingReplica& pending,
                                         std::string& why);
    // Kills and reaps it.
    ~Replica();
    Replica(const Replica&) = delete;
    Replica& operator=(const Replica&) = delete;

    pid_t pid() const { return pid_; }
    const proc::Memory& memory() const { return memory_; }

    std::optional<ptrace::Registers> registers() const;
    bool set_registers(const ptrace::Registers& registers);
    std::optional<ptrace::ExtendedState> extended_state() const;
    bool set_extended_state(const ptrace::ExtendedState& state);

    enum class StopKind : std::uint8_t {
        system_call,  // not executed; rip is behind it, orig_rax its number
        signal,       // a fault of its own
        gone,
        late,  // see run_for()
    };
    struct Stop {
        StopKind kind{};
        siginfo_t info{};  // of a signal
    };
    // Lets it go on until something happens.
    Stop run();
    // The same; but `late` once it has computed for so many nanoseconds.
    Stop run_for(std::uint64_t nanoseconds);
    // Executes one instruction; it is `late` afterwards.
    Stop step();

    // Works also where its memory is write-protected.
    bool write_code(Address to, std::span<const std::byte> bytes);

    // Makes it execute a system call for real, and returns the result: an errno is negative. The
    // registers are as before afterwards. Nothing if the replica is gone.
    std::optional<std::int64_t> call(std::uint64_t number,
                                     std::initializer_list<std::uint64_t> arguments);

    // From any thread. Makes run() and call() return, for the replica is gone then.
    void kill();
    // Kills it. Returns the nanoseconds of processor time that it took, its end included.
    std::uint64_t end();

  private:
    Replica(pid_t pid, Address system_call);

    enum class Way : std::uint8_t { program, step_of_program, system_calls };
    Stop run(Way way, std::optional<std::uint64_t> until);
    // Lets it go on until it stops for another reason than that its group was stopped or continued.
    // Returns the signal; nothing if it is gone, `was_stopped` if its processor time came to
    // `until`.
    static constexpr int was_stopped = 0;
    std::optional<int> go(Way way, std::optional<std::uint64_t> until = {});
    bool await_stop(int& status, std::optional<std::uint64_t> until);
    // waitpid(2). If the replica is gone, its processor time is remembered.
    pid_t wait(int& status, int flags = 0);
    bool take_hold(const Newborns& newborns, const PendingReplica& pending);
    void give_way_to_program() const;

    pid_t pid_;
    int handle_;  // a pidfd: kill() must never hit another process that has the same pid
    std::atomic<bool> is_gone_ = false;  // and reaped
    std::uint64_t computed_ = 0;         // then
    proc::Memory memory_;
    Address system_call_;  // an instruction to make calls with
};

}  // namespace shadowprof::inject
