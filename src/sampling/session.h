// One profiling session: a target, a way of sampling, the profilers.
//
// The tracing thread does all ptrace of the target and nothing slow. The digester's thread reads
// what was traced. The caller's thread waits for the end and talks to the user. Some ways of
// sampling have threads of their own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "profile/common/profiler.h"
#include "sampling/chapter.h"
#include "sampling/clock/program_clock.h"
#include "sampling/digester.h"
#include "sampling/options.h"
#include "sampling/requests/program_requests.h"
#include "sampling/sampling.h"
#include "trace/id_allocator.h"

namespace shadowprof::sampling {

struct Launch {
    std::vector<std::string> command;
    std::function<void(pid_t)> about_to_run{};  // told before the program's first instruction
};
struct Attach {
    pid_t pid;
};
using Target = std::variant<Launch, Attach>;

struct Ending {
    pid_t pid = 0;
    bool ended = false;                     // the program, not just profiling
    std::optional<int> exit_status;         // as waitpid(2) gives it, where we may know it
    std::optional<std::string> stopped_by;  // why profiling ended before the program did
    bool failed = false;                    // one of the failures is why
};

struct Result : Ending {
    bool exhaustive = false;  // every instruction was seen
    Seconds duration{0};
    Cost cost;
    Coverage coverage;
    std::string account;                     // which kinds of samples were taken, and why
    std::map<std::string, double> stood_in;  // seconds that other modes took the samples
    std::vector<std::string> warnings, failures;
    profile::Hotlists hotlists;
    Coverage of_last_chapter;
};

class Session {
  public:
    Session(Options options, Target target);
    ~Session();

    trace::ModuleTable& modules() { return modules_; }

    // `precision`: see ProfileOptions.
    using Make = std::function<Profilers(const trace::BlockTable&, std::atomic<double>* precision)>;
    // Returns when the program has been started or attached to; throws UserError. `take` is called
    // on another thread with what was seen in each chapter but the last.
    void start(const Make& make, TakeHotlists take);
    Clock::time_point began() const { return began_; }  // after start()
    pid_t pid() const { return pid_; }
    bool wait_for(std::chrono::milliseconds time);  // true: it is over
    // Ends profiling and leaves the program running.
    void stop(const std::string& why);
    // shadowprof itself was asked to stop (Ctrl-Z): it does so when the program does.
    void suspend_with_target() { suspend_requested_ = true; }
    Coverage progress() const;
    // What was seen so far is taken by a copy of this process: see Digester.
    using TakeSoFar = std::function<void(const Result&, const profile::Hotlists&, const Chapter&)>;
    std::future<pid_t> snapshot(TakeSoFar take);
    // What was seen in the last chapter; cost and coverage are those of all.
    Result finish();
    // Ends profiling if it is not over.
    Ending how_it_ended();
    const Chapter& last_chapter() const { return *chapter_; }

  private:
    void trace_target();
    void trace_chapter(ptrace::Tracer& tracer, Random random);
    bool must_be_left_alone();
    void watch(ptrace::Tracer& tracer);
    void look_for_another_program();
    void begin_duration();
    static bool work_ahead(const ptrace::Tracer& tracer, Sampling& sampling);
    void run_loop(ptrace::Tracer& tracer, Sampling& sampling, emu::GuestCode& code);
    void on_exec(emu::GuestCode& code);
    struct WhileTraced;
    void note_end(const ptrace::Event& gone);
    void begin_next_chapter();
    void follow_into_stop(int signal);
    std::optional<std::string> reason_to_stop(const Sampling& sampling) const;
    void begin_clock(pid_t pid);
    void end_clock();
    void warn_once(const std::string& line);

    Options options_;
    Target target_;
    trace::ModuleTable modules_;
    PlacesSeen places_;
    std::shared_ptr<Chapter> chapter_ = std::make_shared<Chapter>();
    trace::IdAllocator numbers_;
    std::unique_ptr<Digester> digester_;
    std::atomic<double> precision_{1};  // of samples, so far
    Result result_;
    Clock::time_point began_;  // before anything else knows the session
    std::atomic<pid_t> pid_{0};
    std::atomic<bool> stop_requested_{false};
    std::atomic<bool> suspend_requested_{false};
    std::string stop_reason_;  // written before stop_requested_

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    bool started_ = false;
    bool over_ = false;
    ptrace::Tracer* tracer_ = nullptr;  // while there is one
    // The tracing thread's own.
    std::unique_ptr<ProgramRequests> requests_;
    std::unique_ptr<ProgramClock> clock_;
    Clock::time_point deadline_ = Clock::time_point::max();
    bool cannot_profile_ = false;
    bool calls_ptrace_ = false;
    bool is_starting_ = false;  // it has not executed its program yet
    WithoutPreferredKind without_preferred_;
    std::vector<std::string> warnings_of_sampling_;  // in the last chapter
    std::exception_ptr failure_;
    std::thread tracing_thread_;
};

}  // namespace shadowprof::sampling
