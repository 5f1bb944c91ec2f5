// Calling contexts: in which functions, called by which, instructions were executed. From the calls
// and returns of Traces, beginning with the stack at which a Trace begins.
#pragma once

#include <memory>
#include <vector>

#include "profile/caller/caller_section.h"
#include "profile/common/open_samples.h"
#include "profile/common/profile_type.h"
#include "profile/common/profiler.h"
#include "profile/context/call_walk.h"

namespace shadowprof::profile {

class ContextProfiler : public Profiler {
  public:
    ContextProfiler(const trace::BlockTable& blocks, FunctionMap& functions,
                    std::size_t most_nodes = CallTree::default_most_nodes,
                    std::size_t kept_samples = 0, std::uint64_t seed = 0)
        : captures_(kept_samples > 0 ? trace::CapturePlan::of_arguments(functions)
                                     : trace::CapturePlan()),
          tree_(most_nodes),
          stretches_(blocks, functions, tree_),
          kept_samples_(kept_samples),
          kept_(kept_samples, seed) {}

    std::string_view name() const override { return "context"; }
    trace::CapturePlan captures() const override { return captures_; }
    bool reads_segments() const override { return true; }
    std::unique_ptr<Reader> open(const trace::TraceStart& start) override;
    void end_sample(trace::SampleId sample, std::uint64_t weight) override;
    // A list of contexts, one of functions and their callers, and one of samples that are kept.
    void yield(Hotlists& into, Seen seen) override;

    Stretches& stretches() { return stretches_; }
    void keep_small() {
        if (tree_.has_too_many_nodes()) forget_rare_nodes();
    }

  private:
    struct Sample {
        CallCounts counts;
        std::vector<std::unique_ptr<CallWalk>> walks;  // of its threads
    };
    struct OfNode {
        Statistics self, inclusive;
        std::uint64_t calls = 0;
    };
    struct OfCallee {
        Statistics inclusive;
        std::uint64_t calls = 0;
    };
    void fold(Sample& sample, std::uint64_t weight);
    void forget_rare_nodes();
    ContextHotlist contexts(Seen seen) const;
    CallerHotlist callers(Seen seen) const;
    Totals totals(Seen seen) const;

    const trace::CapturePlan captures_;
    CallTree tree_;
    Stretches stretches_;
    const std::size_t kept_samples_;
    KeptSamples kept_;
    OpenSamples<Sample> samples_;
    std::vector<OfNode> nodes_;
    std::vector<OfCallee> functions_, arcs_;
    Totals totals_;
};

extern const ProfileType context_type;

}  // namespace shadowprof::profile
