// A replica: a forked copy of the target that belongs to us, with the one thread that forked it. It
// can be given more threads.
//
// A replica is held by the thread of the profiler that took it, which may be any: replicas are not
// the Tracer's business, and what happens to them never keeps the target waiting. It dies with the
// thread that holds it (PTRACE_O_EXITKILL is in force before any code of the program can run in
// it). Its system calls stop before they are executed (PTRACE_SYSEMU): others decide what becomes
// of them.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

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
    // The thread that all the rest is about: the one that forked it, until another one is chosen.
    pid_t tid() const { return tid_; }
    void choose(pid_t tid) { tid_ = tid; }
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

    // --- with several threads ---
    // The chosen one makes one more, with its registers but for rax, which is stopped before its
    // first instruction. Nothing if the kernel refuses.
    std::optional<pid_t> add_thread();
    // Ends the chosen one, which is not the first; the first is the chosen one then.
    void end_thread();
    // Lets the chosen one go on, beside others.
    void let_go();
    // How many there are of which await() will tell.
    std::size_t running() const { return running_.size() + held_.size() + stopped_.size(); }
    // The next of those that were let go to stop; it is the chosen one then.
    Stop await();
    // While this lives none of the others runs.
    class Standstill {
      public:
        explicit Standstill(Replica& replica) : replica_(replica) { replica_.stop_others(); }
        ~Standstill() { replica_.let_others_go_on(); }
        Standstill(const Standstill&) = delete;
        Standstill& operator=(const Standstill&) = delete;

      private:
        Replica& replica_;
    };

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
    void resume(pid_t tid);
    std::optional<Stop> stop_for(int signal) const;
    // waitpid(2) for any thread.
    pid_t wait_for_any(int& status);
    void note_end(pid_t tid, int status, const rusage& usage);
    void stop_others();
    void let_others_go_on();
    // waitpid(2). If the replica is gone, its processor time is remembered.
    pid_t wait(int& status, int flags = 0);
    bool take_hold(const Newborns& newborns, const PendingReplica& pending);
    void give_way_to_program() const;

    pid_t pid_;
    pid_t tid_ = pid_;
    std::vector<pid_t> running_, held_;  // of several threads: that were let go; by a Standstill
    std::vector<std::pair<pid_t, int>> stopped_;  // … and their stops that nobody was told of
    bool has_several_ = false;
    int handle_;  // a pidfd: kill() must never hit another process that has the same pid
    bool is_ending_ = false;             // a thread has ended, so all do
    std::atomic<bool> is_gone_ = false;  // and reaped
    std::uint64_t computed_ = 0;         // then
    proc::Memory memory_;
    Address system_call_;  // an instruction to make calls with
};

}  // namespace shadowprof::inject
