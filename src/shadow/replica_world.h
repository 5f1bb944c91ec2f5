// What the world is to a replica, and what a replica may do to it: nothing.
//
// A replica is a process like any other as far as the kernel is concerned: it has what the target
// has. Before any code of the program runs in it, it gives that up: open files (a pipe's reader
// would wait for it, a socket's peer would not see the end, a lock would stay) and write access to
// shared memory. From then on its system calls are stopped before they are executed, and the table
// in emu/system_calls.h says what becomes of each: the replica makes it after all (those that touch
// only what is its own), or is answered, or ends. This is where that is done.
#pragma once

#include <signal.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/system_calls.h"
#include "emu/translator/translated_replica.h"
#include "ptrace/maps.h"
#include "ptrace/nursery.h"
#include "ptrace/replica.h"
#include "shadow/mapped_files.h"
#include "shadow/replica_queries.h"
#include "shadow/withdrawn_memory.h"

namespace shadowprof::shadow {

class ReplicaWorld : public emu::translator::ReplicaServices {
  public:
    // First acts of a newborn of `target`, which had `open` open. `maps` are its own. Nothing and
    // `why` if it cannot be made harmless.
    static std::unique_ptr<ReplicaWorld> settle(ptrace::Replica& replica, pid_t target,
                                                const ptrace::Nursery& nursery,
                                                const ptrace::Birth& birth, WorldAtBirth at_birth,
                                                const ptrace::Maps& maps,
                                                std::vector<AddressRange> engine_memory,
                                                std::string& why);
    ~ReplicaWorld() override;
    ReplicaWorld(const ReplicaWorld&) = delete;
    ReplicaWorld& operator=(const ReplicaWorld&) = delete;

    // In the registers, and in the replica's memory, is what the program sees behind the call; the
    // replica's own registers are not set.
    std::optional<std::string> serve(ptrace::Registers& registers) override;
    // A write to shared memory that was withdrawn.
    Fault serve_fault(const siginfo_t& info) override;

  private:
    class Memory;

    ReplicaWorld(ptrace::Replica& replica, pid_t target, const ptrace::Birth& birth,
                 WorldAtBirth at_birth, const ptrace::Maps& maps);
    bool close_everything();
    void open_directories();
    void learn_facts(pid_t target, const ptrace::Birth& birth);
    // A call that concerns the registers, which are the caller's: nothing if it is none.
    std::optional<std::int64_t> change_registers(const emu::SystemCall& call,
                                                 ptrace::Registers& registers);
    std::optional<std::int64_t> execute(const emu::SystemCall& call);
    bool move_to(std::int64_t fd, int number);
    std::int64_t move_to_free_number(std::int64_t fd);
    bool is_not_what_was_found(std::int64_t opened);
    std::int64_t note(const emu::SystemCall& call, std::int64_t result);
    std::optional<std::string> serve(const emu::SystemCall& call, ptrace::Registers& registers);

    ptrace::Replica& replica_;
    MappedFiles mapped_files_;
    WithdrawnMemory withdrawn_;
    std::unique_ptr<Memory> memory_;
    ReplicaQueries queries_;
    emu::GuestFacts facts_;
};

}  // namespace shadowprof::shadow
