// Profile type path: interprocedural paths, as path_rule.h defines them.
#pragma once

#include "model/shown_chapter.h"
#include "profile/common/profile_type.h"
#include "profile/common/profiler.h"
#include "profile/path/path_facts.h"
#include "profile/path/path_section.h"
#include "profile/path/path_store.h"

namespace shadowprof::profile {

class PathProfiler : public Profiler {
  public:
    static constexpr std::size_t default_most_paths = 1u << 20;

    PathProfiler(const trace::BlockTable& blocks, std::uint64_t seed,
                 std::size_t most_paths = default_most_paths)
        : blocks_(blocks), store_(most_paths, seed), facts_(blocks) {}

    std::string_view name() const override { return "path"; }
    trace::CapturePlan captures() const override { return {}; }
    std::unique_ptr<Reader> open(const trace::TraceStart& start) override;
    void count(trace::SampleId sample, const Counts& counts) override;
    void end_sample(trace::SampleId sample, std::uint64_t weight) override {
        store_.close(sample, weight);
    }
    void yield(Hotlists& into, Seen seen) override;

  private:
    friend class PathReader;

    const trace::BlockTable& blocks_;
    PathStore store_;
    PathFacts facts_;
};

// As reports show a path.
model::ShownSteps steps_of(const PathSection::Entry& path);

extern const ProfileType path_type;

}  // namespace shadowprof::profile
