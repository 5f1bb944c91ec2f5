// How long it takes until a replica's loads have their usual times. When it begins, the caches of
// its core are cold, its page tables are empty where they map files, and pages that it writes are
// copied.
//
//     bench-warm-up PROGRAM [ARG...]
//
// Replicas time loads from their first unit on. The bench prints the means of bursts by the burst's
// place in the life of its replica. On average there is a burst every 131,072 units.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "machine/calibration.h"
#include "profile/common/profiler.h"
#include "sampling/modes/modes.h"
#include "sampling/session.h"

using namespace shadowprof;

namespace {

struct Times {
    std::vector<double> all;

    double mean() const {
        double sum = 0;
        for (const auto time : all) sum += time;
        return sum / static_cast<double>(std::max<std::size_t>(all.size(), 1));
    }
};

class TimesByAge : public profile::Profiler {
  public:
    TimesByAge(const machine::LatencyScale& scale, std::map<unsigned, Times>& times)
        : scale_(scale), times_(times) {}

    std::string_view name() const override { return "times by age"; }
    trace::CapturePlan captures() const override { return trace::Capture::latency; }
    std::unique_ptr<profile::Reader> open(const trace::TraceStart& start) override {
        const bool is_timed = start.contents == trace::Contents::timings;
        return std::make_unique<BurstReader>(*this, is_timed ? bursts_[start.sample]++ : 0);
    }
    void end_sample(trace::SampleId) override {}
    void yield(profile::Hotlists&, profile::Seen) override {}

  private:
    class BurstReader : public profile::Reader {
      public:
        BurstReader(TimesByAge& all, unsigned burst) : all_(all), burst_(burst) {}
        void digest(const trace::TraceChunk& chunk) override {
            for (const auto& load : chunk.timed_loads)
                all_.times_[burst_].all.push_back((load.ticks - all_.scale_.overhead_ticks) *
                                                  all_.scale_.nanoseconds_per_tick);
        }
        void finish(const trace::TraceEnd&) override {}

      private:
        TimesByAge& all_;
        unsigned burst_;
    };

    const machine::LatencyScale& scale_;
    std::map<unsigned, Times>& times_;
    std::map<trace::SampleId, unsigned> bursts_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    const auto scale = machine::calibrate_once_in_a_while();
    if (!scale.clock_is_usable) {
        fmt::print("{}\n", scale.why_not);
        return 1;
    }
    sampling::Options options;
    options.mode = sampling::Mode::shadow;
    options.sample_size = sampling::row_of(sampling::Mode::shadow).sample_size;
    options.warm_up = 0;
    options.seed = 1;
    std::map<unsigned, Times> times;
    sampling::Session session{options, sampling::Launch{{argv + 1, argv + argc}}};
    session.start(
        [&](const auto&...) {
            times.clear();
            std::vector<std::unique_ptr<profile::Profiler>> profilers;
            profilers.push_back(std::make_unique<TimesByAge>(scale, times));
            return profilers;
        },
        {});
    while (!session.wait_for(std::chrono::seconds{1})) {
    }
    session.finish();

    fmt::print("{:>6} {:>8} {:>9} {:>9} {:>12} {:>16}\n", "burst", "loads", "mean ns", "median ns",
               "disturbed, %", "mean without, ns");
    for (auto& [burst, found] : times) {
        auto& all = found.all;
        if (all.empty()) continue;
        std::sort(all.begin(), all.end());
        const auto size = static_cast<double>(all.size());
        const auto mean = found.mean(), median = all[all.size() / 2];
        all.erase(std::upper_bound(all.begin(), all.end(), scale.longest_ns), all.end());
        fmt::print("{:6} {:8.0f} {:9.1f} {:9.1f} {:12.2f} {:16.1f}\n", burst, size, mean, median,
                   100 * (1 - static_cast<double>(all.size()) / size), found.mean());
    }
    return 0;
}
