// The stacks at which samples began: one event for each thread of a sample. Always collected.
#pragma once

#include "profile/common/open_samples.h"
#include "profile/common/profile_type.h"
#include "profile/common/profiler.h"
#include "profile/common/tally.h"
#include "profile/stack/stack_section.h"

namespace shadowprof::profile {

class StackProfiler : public Profiler {
  public:
    std::string_view name() const override { return "stack"; }
    trace::CapturePlan captures() const override { return {}; }
    std::unique_ptr<Reader> open(const trace::TraceStart& start) override;
    void end_sample(trace::SampleId sample) override;
    void yield(Hotlists& into, Seen seen) override;

  private:
    using Stack = std::vector<Location>;
    struct StackHash {
        std::size_t operator()(const Stack& stack) const {
            std::uint64_t hash = stack.size();
            for (const auto& frame : stack) hash = combine_hashes(hash, hash_of(frame));
            return hash;
        }
    };
    void fold(std::vector<Stack>& sample);

    OpenSamples<std::vector<Stack>> samples_;
    Tally<Stack, StackHash> stacks_;
};

extern const ProfileType stack_type;

}  // namespace shadowprof::profile
