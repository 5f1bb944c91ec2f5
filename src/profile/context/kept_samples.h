// The calls of some samples as they came, for those who want to see one run of the program's code
// and not the sum of all. They are drawn from all samples with the same chance for each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "profile/context/call_tree.h"
#include "profile/sample/sample_section.h"
#include "trace/trace.h"

namespace shadowprof::profile {

// One thread of one sample.
class CallRecord {
  public:
    static constexpr std::size_t most_frames = 300;

    CallRecord(std::string thread, std::size_t most_stretches)
        : thread_(std::move(thread)), most_stretches_(most_stretches) {}

    // What is executed from then on is only counted.
    bool is_full() const { return stretches_.size() == most_stretches_; }
    void skip(std::uint64_t instructions) { all_ += instructions; }
    // The program takes so many nanoseconds for all of it; 0: that is not known.
    void takes(double nanoseconds) { takes_ = nanoseconds; }
    // In the last of these functions, the outermost first. If it was called, with these arguments,
    // as far as they are known.
    void add(const std::vector<FunctionId>& functions, std::uint64_t instructions,
             std::vector<std::uint64_t> arguments = {});

    struct Stretch {
        std::size_t depth;
        std::vector<FunctionId> functions;
        std::uint64_t instructions;
        std::vector<std::uint64_t> arguments;
    };
    const std::vector<Stretch>& stretches() const { return stretches_; }
    const std::string& thread() const { return thread_; }
    std::uint64_t all() const { return all_; }
    std::uint64_t picoseconds_of_instruction() const;

  private:
    std::string thread_;
    std::size_t most_stretches_;
    std::uint64_t all_ = 0;
    double takes_ = 0;
    std::vector<Stretch> stretches_;
    std::vector<FunctionId> in_;
};

class KeptSamples {
  public:
    // Of all samples together, if each has one thread; and of a thread at least.
    static constexpr std::size_t most_stretches = 100'000, stretches_at_least = 1000;

    KeptSamples(std::size_t most, std::uint64_t seed) : most_(most), random_(seed) {}

    // For a thread of the sample; nothing if the sample is not kept.
    std::shared_ptr<CallRecord> begin(const trace::TraceStart& start);
    SampleHotlist list(const CallTree& tree) const;

  private:
    struct Sample {
        trace::SampleId id{};
        std::uint64_t number = 0;
        std::vector<std::shared_ptr<CallRecord>> threads;
    };
    Sample* kept(trace::SampleId id);
    Sample* draw(trace::SampleId id);

    std::size_t most_;
    Random random_;
    std::uint64_t met_ = 0;
    trace::SampleId last_met_{};
    std::vector<Sample> samples_;
};

}  // namespace shadowprof::profile
