// What the tests of forks and of replicas share.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "inject/fork_site.h"
#include "inject/replica.h"
#include "support/tracing.h"

namespace shadowprof::inject::testing {

using ptrace::testing::Target;

inline constexpr std::size_t file_size = 8 << 20;

std::string birth_target();
std::string status_of(pid_t pid);

// Stops a thread, at which a fork site looks on its way; false if the process ended first.
bool stop(ptrace::Tracer& tracer, ptrace::Thread& thread, ForkSite* fork_site = nullptr);

// Tries until the moment is good for a fork, as a sampler does.
std::optional<PendingReplica> fork_replica(ptrace::Tracer& tracer, ForkSite& fork_site,
                                           ptrace::Thread& thread);

// Runs on a thread of its own, as the workers of the profiler do.
void in_worker(const std::function<void()>& body);

// Takes the replica, and checks that it is the program as it was where it was forked.
void check_replica(ForkSite& fork_site, const PendingReplica& birth, pid_t target);

// All that may be left is what init, whoever that is here, has yet to notice.
bool has_ended(pid_t pid);

// The beginning of every test that attaches: a fork site in a running program.
void with_fork_site(const Target& target,
                    const std::function<void(ptrace::Tracer&, ForkSite&, ptrace::Thread&)>& body);

void with_replica(const std::function<void(const Target&, ForkSite&, Replica&)>& body);

}  // namespace shadowprof::inject::testing
