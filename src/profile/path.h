// Profile type path: interprocedural paths, as path_rule.h defines them.
#pragma once

#include <vector>

#include "profile/path_rule.h"
#include "profile/path_store.h"
#include "profile/profiler.h"

namespace shadowprof::profile {

class PathProfiler : public Profiler {
  public:
    static constexpr std::size_t default_most_paths = 1u << 20;

    PathProfiler(const trace::BlockTable& blocks, std::uint64_t seed,
                 std::size_t most_paths = default_most_paths)
        : blocks_(blocks), store_(most_paths, seed) {}

    std::string_view name() const override { return "path"; }
    trace::CapturePlan captures() const override { return {}; }
    std::unique_ptr<Reader> open(const trace::TraceStart& start) override;
    void count(trace::SampleId sample, const Counts& counts) override;
    void end_sample(trace::SampleId sample) override { store_.close(sample); }
    void yield(Hotlists& into, Seen seen) override;

  private:
    friend class PathReader;

    // What the loop over blocks needs of a block.
    struct Facts {
        std::uint64_t key = 0;
        Address start;
        BackwardTargets path_ends;  // by going there
    };
    void learn_blocks();

    const trace::BlockTable& blocks_;
    PathStore store_;
    std::vector<Facts> facts_;  // by block
};

}  // namespace shadowprof::profile
