// Reads what a thread did and hands modules what they watch, in order.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "profile/common/awaited_returns.h"
#include "profile/common/context.h"
#include "profile/common/open_samples.h"
#include "profile/common/walk.h"
#include "profile/module/module_set.h"
#include "profile/rule/rule_plans.h"

namespace shadowprof::profile {

// What all readers share.
class ModuleFeed {
  public:
    ModuleFeed(const trace::BlockTable& blocks, const RuleSet& rules, ModuleSet& modules)
        : blocks_(blocks), rules_(rules), modules_(modules), plans_(blocks, rules) {}

    // Executions of what a module watches: handed over, and all that there were.
    struct OfModule {
        std::uint64_t read = 0, all = 0;
    };
    struct Sample {
        std::vector<OfModule> modules;
        bool is_read = false;  // not only counted
    };
    Sample& open(trace::SampleId id) {
        auto& sample = samples_.open(id);
        sample.modules.resize(modules_.size());
        return sample;
    }
    void count(Sample& sample, trace::BlockId block, std::uint64_t times);
    void end_sample(trace::SampleId id, std::uint64_t weight);
    void end_samples();

    const trace::BlockTable& blocks() const { return blocks_; }
    const RuleSet& rules() const { return rules_; }
    ModuleSet& modules() { return modules_; }
    ContextTable& contexts() { return contexts_; }
    const RulePlan& plan_of(trace::BlockId block) { return plans_.of(block); }
    // Its number; modules are told of it when they first hear of it.
    std::uint32_t place_of(const trace::Block& block, const RuleHit& hit);
    const Location& place(std::uint32_t number) const { return places_.at(number); }
    std::size_t places() const { return places_.size(); }
    std::uint64_t next_ticket() { return ++tickets_; }
    std::uint32_t next_thread() { return ++threads_; }
    // Of all samples that have ended.
    const OfModule& covered(std::size_t module) const { return covered_[module]; }

  private:
    const trace::BlockTable& blocks_;
    const RuleSet& rules_;
    ModuleSet& modules_;
    RulePlans plans_;
    ContextTable contexts_;
    std::vector<Location> places_;
    std::unordered_map<Location, std::uint32_t, trace::LocationHash> numbers_;
    std::vector<std::vector<bool>> told_;  // by watch and place
    OpenSamples<Sample> samples_;
    std::vector<OfModule> covered_ = std::vector<OfModule>(modules_.size());
    std::uint64_t tickets_ = 0;
    std::uint32_t threads_ = 0;
};

class ModuleReader : public Reader {
  public:
    ModuleReader(ModuleFeed& feed, const trace::TraceStart& start);

    void digest(const trace::TraceChunk& chunk) override;
    void finish(const trace::TraceEnd& end) override;

    // Of its walk.
    void run(trace::BlockId before, std::span<const trace::BlockId> ids);
    void leave(trace::BlockId from, Address next, const Location& place) {
        left_by(feed_.blocks().at(from), next, place);
    }
    void interrupted();
    void end(trace::BlockId from, const trace::TraceEnd& end) {
        left_by(feed_.blocks().at(from), end.continuation, end.continuation_place);
    }

  private:
    struct Awaited {
        std::uint32_t module = 0;
        std::uint8_t word = 0;  // what is awaited
        shadowprof_event event{};
    };
    void step(const trace::Block& block);
    void left_by(const trace::Block& from, Address next, const Location& place);
    void look_at(const trace::Block& block, const RuleHit& hit,
                 std::span<const std::uint64_t> values, const RuleExit* exit);
    void hand(std::uint32_t module, const shadowprof_event& event);
    void hand_to_all(shadowprof_event_kind kind);
    void hand_over();
    auto give_up() {
        return [this](Awaited& awaited) {
            awaited.event.kind = SHADOWPROF_NEVER_RETURNS;
            awaited.event.instructions = instructions_;
            hand(awaited.module, awaited.event);
        };
    }

    ModuleFeed& feed_;
    ModuleFeed::Sample& counts_;
    trace::SampleId sample_;
    Walker walker_;
    ContextStack contexts_;
    AwaitedReturns<Awaited> awaited_;
    std::uint32_t thread_;
    bool awaits_ = false;
    std::uint64_t instructions_ = 0;                     // before the block at hand
    std::span<const std::uint64_t> values_;              // of the chunk, not yet read
    std::vector<std::uint64_t> values_of_unfinished_;    // the block whose exit is not known yet
    std::vector<std::vector<shadowprof_event>> events_;  // by module, not yet handed over
};

}  // namespace shadowprof::profile
