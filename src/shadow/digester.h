// The profilers' thread: takes Traces from the engines through a bounded queue, so that the thread
// that does ptrace never waits for a hash table, and reads each with every profiler. It runs at
// the lowest priority: the target comes first.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "profile/profiler.h"
#include "ptrace/call_stack.h"
#include "ptrace/maps.h"
#include "trace/trace.h"

namespace shadowprof::shadow {

struct Coverage {
    std::uint64_t samples = 0;
    std::uint64_t instructions = 0;
    std::uint64_t blocks = 0;
    std::map<std::string, std::uint64_t> ended;  // why Traces ended
};

class Digester : public trace::TraceSink {
  public:
    Digester(std::vector<std::unique_ptr<profile::Profiler>> profilers,
             const trace::BlockTable& blocks, trace::ModuleTable& modules);
    ~Digester() override;

    void begin(trace::TraceStart start) override;
    // With a stack to be unwound on this side of the queue, where there is time for it.
    void begin(trace::TraceStart start, ptrace::StackSnapshot stack,
               std::shared_ptr<const ptrace::Maps> maps);
    void chunk(trace::TraceChunk chunk) override;
    void end(trace::TraceEnd end) override;
    void end_sample(trace::SampleId sample) override;

    // Reads what is queued, then yields everything. Call once.
    profile::Hotlists finish(profile::Seen seen);

    // So much is queued that chunk() may soon have to wait.
    bool is_behind() const;
    Coverage coverage() const;                   // so far
    std::optional<std::string> failure() const;  // of a profiler: profiling went on without it

  private:
    struct Begin {
        trace::TraceStart start;
        std::optional<ptrace::StackSnapshot> stack;
        std::shared_ptr<const ptrace::Maps> maps;
    };
    struct EndOfSample {
        trace::SampleId sample;
    };
    using Message = std::variant<Begin, trace::TraceChunk, trace::TraceEnd, EndOfSample>;

    void put(Message message);
    void work();
    void read(Begin& begin);
    void read(trace::TraceChunk& chunk);
    void read(trace::TraceEnd& end);
    void read(EndOfSample& end);

    std::vector<std::unique_ptr<profile::Profiler>> profilers_;
    const trace::BlockTable& blocks_;
    trace::ModuleTable& modules_;
    std::map<trace::TraceId, std::vector<std::unique_ptr<profile::Reader>>> open_;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Message> queue_;
    std::size_t queued_words_ = 0;
    bool closed_ = false;
    Coverage coverage_;
    std::optional<std::string> failure_;
    std::thread worker_;
};

}  // namespace shadowprof::shadow
