// Profile type time: where the time of threads goes, as the clock sees it (clock_look.h).
#pragma once

#include <tuple>

#include "profile/common/profile_type.h"
#include "profile/common/profiler.h"
#include "profile/common/tally.h"
#include "profile/time/time_section.h"

namespace shadowprof::profile {

class TimeProfiler : public Profiler {
  public:
    explicit TimeProfiler(FunctionMap& functions) : functions_(functions) {}

    std::string_view name() const override { return "time"; }
    trace::CapturePlan captures() const override { return {}; }
    std::unique_ptr<Reader> open(const trace::TraceStart&) override {
        return std::make_unique<NothingToRead>();
    }
    bool reads_clock() const override { return true; }
    void look(const ClockLook& look) override;
    void end_sample(trace::SampleId, std::uint64_t) override {}
    void yield(Hotlists& into, Seen seen) override;

  private:
    struct Key {
        std::string thread;
        ThreadState state{};
        std::string call;
        std::vector<Location> frames;
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        std::size_t operator()(const Key& key) const;
    };

    FunctionMap& functions_;
    Tally<Key, KeyHash> on_processor_, waiting_;
};

extern const ProfileType time_type;

}  // namespace shadowprof::profile
