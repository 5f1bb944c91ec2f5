// The requests that the program's threads work for, as they publish them (proc/thread_context.h):
// where that is, and what it says now. A program that publishes nothing costs a look at each of its
// modules, once. Used by several threads.
//
// What a thread publishes is read while it is stopped, or displaced by a reader of ours
// (clock/close_reader.h), which must not wait: so reading it and finding out what it means are two.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "proc/maps.h"
#include "proc/memory.h"
#include "proc/thread_variable.h"
#include "sampling/tuning.h"
#include "trace/request.h"

namespace shadowprof::sampling {

class ProgramRequests {
  public:
    explicit ProgramRequests(pid_t pid) : memory_(pid) {}

    // Looks for what publishes requests in modules that are new.
    void look_at(const std::shared_ptr<const proc::Maps>& maps);
    // It executes another program now.
    void program_is_new();
    bool are_published() const { return are_published_; }
    // A sample is about to begin there.
    void is_stopped(pid_t tid, Address fs, Address at);
    // Else it is sought, from any place in its stack.
    void seek_fs(pid_t tid, Address stack);
    // What the thread says can be read.
    bool knows(pid_t tid) const { return fs_of(tid).has_value(); }
    void forget(pid_t tid);

    // Of a thread that runs it is read twice.
    enum class Moment : std::uint8_t { stopped, running };
    // Empty: it publishes nothing. Nothing: it could not be read. Waits for nobody.
    using Record = std::vector<std::byte>;
    std::optional<Record> record(pid_t tid, Moment moment) const;
    trace::RequestSight sight_of(const std::optional<Record>& record);
    trace::RequestSight of_sleeper(pid_t tid) { return sight_of(record(tid, Moment::running)); }
    // Where many samples begin, behind calls of the system, requests have just ended, or have come
    // and are not published yet: there "none" means nothing.
    trace::RequestSight of_stopped(pid_t tid);

  private:
    std::optional<Address> fs_of(pid_t tid) const;
    bool is_behind_call(pid_t tid) const;
    std::shared_ptr<const trace::Request> request_in(const Record& record);
    std::string name_of(std::uint8_t key);
    void read_names();

    proc::Memory memory_;
    std::atomic<bool> are_published_ = false;
    mutable std::mutex quick_;  // of the following three
    std::vector<proc::ThreadVariable> variables_;
    std::map<pid_t, std::optional<Address>> fs_;  // nothing: sought in vain
    std::map<pid_t, Address> stopped_at_;         // the last time
    std::mutex mutex_;                            // of the rest
    std::shared_ptr<const proc::Maps> maps_;
    std::map<Address, int> modules_seen_;            // how often
    std::optional<std::vector<std::string>> names_;  // by key, if the process publishes them
    Clock::time_point read_names_at_{};
    Seconds between_names_ = tuning::first_between_names;
    // Records that were read of late: most are read again.
    std::map<Record, std::shared_ptr<const trace::Request>> known_;
};

}  // namespace shadowprof::sampling
