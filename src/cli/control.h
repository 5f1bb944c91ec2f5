// Commands to a running profiler, through named pipes, as perf has them: --control fifo:CTL[,ACK].
// A line is a command; where there is an ACK pipe each is answered by a line, "ack" or why not.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "model/run_facts.h"
#include "profile/rule/rule_set.h"

namespace shadowprof::cli {

class Control {
  public:
    // `text` is fifo:CTL[,ACK]; empty: there are no commands. Throws UserError unless both are
    // named pipes that only we and root may write to.
    explicit Control(const std::string& text);
    ~Control();
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

    bool is_used() const { return commands_ >= 0; }
    // Commands are carried out from now on. `snapshot` returns why it failed; empty if it did not.
    void begin(profile::RuleParameters& rules, std::function<std::string()> snapshot);
    void end();
    // Those that were carried out so far.
    std::vector<model::ControlCommand> log() const;

    // Carries out one; returns why not. What is not a matter of rules is the caller's.
    static std::string change(profile::RuleParameters& rules, std::string_view command);

  private:
    void listen();
    void answer(std::string_view line);
    std::string carry_out(std::string_view command);

    int commands_ = -1, answers_ = -1, wake_ = -1;
    profile::RuleParameters* rules_ = nullptr;
    std::function<std::string()> snapshot_;
    Clock::time_point began_;
    mutable std::mutex mutex_;
    std::vector<model::ControlCommand> log_;
    std::thread thread_;
};

}  // namespace shadowprof::cli
