// proc: reads what the kernel says of processes, in /proc, in control groups and in their memory,
// without stopping them. It must not call ptrace(2), and knows nothing of profiling.
//
// This file: facts about processes and threads.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "proc/proc_file.h"

namespace shadowprof::proc {

struct SignalSets {             // bit n-1 is signal n
    std::uint64_t pending = 0;  // of the thread
    std::uint64_t process_pending = 0;
    std::uint64_t blocked = 0;
    std::uint64_t ignored = 0;  // explicitly; see ignores()
    std::uint64_t caught = 0;

    // Nothing would happen on delivery: SIG_IGN, or SIG_DFL of SIGCHLD, SIGCONT, SIGURG, SIGWINCH.
    bool ignores(int signal) const;
    // A handler would run or the process would die.
    bool acts_on(int signal) const { return !ignores(signal); }
};

struct ThreadStat {
    char state = '?';             // R, S, D, T, t, Z, X
    std::uint64_t cpu_ticks = 0;  // user + system, in clock ticks
    int processor = 0;
    int scheduling = 0;  // SCHED_OTHER, …
};

std::optional<ThreadStat> thread_stat(pid_t pid, pid_t tid);
// The same, for reading it again and again.
class ThreadStatWatch {
  public:
    std::optional<ThreadStat> of(pid_t pid, pid_t tid);

  private:
    ThreadFile file_{"stat"};
};
// Nanoseconds on a CPU (schedstat); nothing if gone.
std::optional<std::uint64_t> thread_cpu_time(pid_t pid, pid_t tid);
std::optional<SignalSets> signal_sets(pid_t pid, pid_t tid);
// From the text of the thread's file "status"; nothing if that is empty.
std::optional<SignalSets> signal_sets_in(std::string_view status);
// How often the thread has gone to sleep, in system calls and in ptrace stops.
std::optional<std::uint64_t> times_slept(pid_t pid, pid_t tid);
// Nanoseconds that all threads of the process have run, exact to the nanosecond.
std::optional<std::uint64_t> process_cpu_time(pid_t pid);
// What the kernel has counted of a process, or of one of its threads. Time is in clock ticks.
struct UsageCounts {
    std::uint64_t minor_faults = 0, childrens_minor_faults = 0;
    std::uint64_t major_faults = 0, childrens_major_faults = 0;
    std::uint64_t user = 0, system = 0, childrens_user = 0, childrens_system = 0;
};
std::optional<UsageCounts> usage_counts(pid_t pid);
std::optional<UsageCounts> usage_counts(pid_t pid, pid_t tid);
// Kilobytes that the process had in memory at its peak.
std::optional<std::uint64_t> peak_memory(pid_t pid);
// Page faults of the process so far that needed no reading.
std::optional<std::uint64_t> minor_faults(pid_t pid);
// Pages in memory that are no file's.
std::optional<std::uint64_t> anonymous_pages(pid_t pid);
std::vector<pid_t> threads_of(pid_t pid);
// The id by which a process's memory can be read. When the first thread of a process has ended, its
// pid stands for nothing any more, so this is another thread's id; otherwise it is the pid.
pid_t one_with_memory(pid_t pid);
// Whether both have the same memory, as after vfork(2). False if the kernel does not tell.
bool share_memory(pid_t a, pid_t b);
// Whether it executes a program of 32-bit code.
bool is_32bit(pid_t pid);
std::vector<std::string> command_line(pid_t pid);
// The path of the program that it executes, or else its name. If it was started by another name
// of the same file (sh for dash, redis-server for redis-check-rdb), that one.
std::string program_of(pid_t pid);

struct Birth {
    pid_t pid = 0, parent = 0;
    std::uint64_t started = 0;  // clock ticks since the machine was started: with the pid, unique
    int end_signal = 0;         // that its parent gets
};
// Nothing if there is no process of this number.
std::optional<Birth> birth_of(pid_t pid);
// Where the kernel put the random bytes that a program makes its stack protector's value of.
std::optional<Address> random_bytes_of(pid_t pid);

// The call that a thread sleeps in, and where it will go on; nothing if it runs or is stopped.
struct CallOfSleeper {
    std::int64_t number = 0;  // -1: none, it waits for a page to be read
    std::array<std::uint64_t, 6> arguments{};
    Address stack, at;
    bool operator==(const CallOfSleeper&) const = default;
};
std::optional<CallOfSleeper> sleeps_in_call(pid_t pid, pid_t tid);

// How a thread has had processors so far.
struct ScheduledTime {
    std::uint64_t ran = 0, waited = 0;  // nanoseconds on one, and ready for one
    std::uint64_t times = 0;
};
std::optional<ScheduledTime> scheduled_time(pid_t pid, pid_t tid);
// The same, of one thread again and again.
class ScheduledTimeWatch {
  public:
    std::optional<ScheduledTime> of(pid_t pid, pid_t tid);

  private:
    ThreadFile file_{"schedstat"};
};
std::string thread_name(pid_t pid, pid_t tid);
// What a thread calls itself, which is another number where it is in a container.
pid_t own_number_of(pid_t tid);

// Whether the thread sleeps in a system call that is not disturbed when the thread is stopped and
// let go on.
bool sleeps_soundly(pid_t pid, pid_t tid);

// Whether it sleeps in futex(2), waiting to be woken, where a stop is as good as none: the call is
// made again, for the time that is left.
bool waits_in_futex(pid_t pid, pid_t tid);

// Whether the thread runs on a CPU or waits for one, and is not inside a system call. Such a thread
// may be interrupted at any time; a sleeping one might see an EINTR that it did not cause.
bool is_running(pid_t pid, pid_t tid);

// Where a thread that sleeps or is stopped will go on; nothing if it runs.
std::optional<Address> goes_on_at(pid_t pid, pid_t tid);

}  // namespace shadowprof::proc
