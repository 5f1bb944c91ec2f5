// What the world is to a replica, and what a replica may do to it: nothing.
//
// To the kernel a replica is a process like any other, and has whatever the target has. Before any
// code of the program runs in it, it gives that up: open files (a pipe's reader would wait for it,
// a socket's peer would not see the end, a lock would stay) and write access to shared memory. From
// then on its system calls are stopped before they are executed. The table in emu/syscalls says
// what becomes of each: the replica makes the call after all (if it touches only what is the
// replica's own), or gets an answer, or ends. That is carried out here.
#pragma once

#include <signal.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/syscalls/system_calls.h"
#include "emu/translator/translated_replica.h"
#include "inject/fork_site.h"
#include "inject/replica.h"
#include "proc/maps.h"
#include "sampling/sandbox/journal.h"
#include "sampling/sandbox/mapped_files.h"
#include "sampling/sandbox/replica_queries.h"
#include "sampling/sandbox/withdrawn_memory.h"
#include "sampling/tuning.h"

namespace shadowprof::sampling {

class ReplicaSandbox : public emu::translator::ReplicaServices {
  public:
    // Makes a newborn of `target` harmless. `maps` are its own. Nothing and `why` if that failed.
    static std::unique_ptr<ReplicaSandbox> settle(
        inject::Replica& replica, pid_t target, const inject::ForkSite& fork_site,
        const inject::PendingReplica& birth, FileTableSnapshot at_birth, const proc::Maps& maps,
        std::vector<AddressRange> engine_memory, std::string& why);
    ~ReplicaSandbox() override;
    ReplicaSandbox(const ReplicaSandbox&) = delete;
    ReplicaSandbox& operator=(const ReplicaSandbox&) = delete;

    // Afterwards `registers` and the replica's memory are what the program sees behind the call.
    // The replica's own registers are not set.
    std::optional<std::string> serve(ptrace::Registers& registers) override;
    // What the kernel tells the original is told to the replica, where it could not go on
    // otherwise.
    void listen_to(std::shared_ptr<Journal> journal) { journal_ = std::move(journal); }
    // One more thread of the replica: `thread` is the target's, `own_number` what it calls itself.
    void add_thread(pid_t thread, pid_t own_number, std::uint64_t signal_mask);
    void serves(std::size_t thread) override;
    pid_t own_number(std::size_t thread) const override {
        return thread == served_ ? facts_.tid : others_.at(thread).tid;
    }
    void starts(pid_t own_number) override { add_thread(0, own_number, facts_.signal_mask); }
    bool is_limited() const override {
        return journal_ && journal_->told() >= tuning::told_until_warm;
    }
    // After a write to shared memory that was withdrawn.
    Fault serve_fault(const siginfo_t& info) override;

  private:
    class Memory;

    ReplicaSandbox(inject::Replica& replica, pid_t target, const inject::PendingReplica& birth,
                   FileTableSnapshot at_birth, const proc::Maps& maps);
    bool close_everything();
    void open_directories();
    void learn_facts(pid_t target, const inject::PendingReplica& birth);
    // Carries out a call that concerns registers, which the caller holds. Nothing if it is another.
    std::optional<std::int64_t> change_registers(const emu::SystemCall& call,
                                                 ptrace::Registers& registers);
    std::optional<std::int64_t> execute(const emu::SystemCall& call);
    bool move_to(std::int64_t fd, int number);
    std::int64_t move_to_free_number(std::int64_t fd);
    bool is_not_what_was_found(std::int64_t opened);
    std::int64_t note(const emu::SystemCall& call, std::int64_t result);
    std::optional<std::string> serve(const emu::SystemCall& call, ptrace::Registers& registers);
    bool is_of_file(const emu::SystemCall& call);
    bool tell(const HeardCall& heard);

    inject::Replica& replica_;
    MappedFiles mapped_files_;
    WithdrawnMemory withdrawn_;
    std::unique_ptr<Memory> memory_;
    ReplicaQueries queries_;
    emu::GuestFacts facts_;
    std::shared_ptr<Journal> journal_;
    // What the facts and the queries say of a thread.
    struct OfThread {
        ReplicaQueries::Asker asker;
        pid_t tid;
        std::uint64_t signal_mask, pending_signals, idle_signals;
        bool has_set_signal_stack;
    };
    std::vector<OfThread> others_;  // but for the one that is served
    std::size_t served_ = 0;
};

}  // namespace shadowprof::sampling
