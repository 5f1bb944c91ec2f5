// Profile type timeline: what the program did when, as the clock sees it (clock_look.h).
//
// The run is cut into columns of a tenth of a second. When there are too many, each two become one:
// so a profile of a day is no larger than one of ten seconds.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "profile/common/profile_type.h"
#include "profile/common/profiler.h"
#include "profile/timeline/timeline_section.h"

namespace shadowprof::profile {

class TimelineProfiler : public Profiler {
  public:
    explicit TimelineProfiler(FunctionMap& functions) : functions_(functions) {}

    std::string_view name() const override { return "timeline"; }
    trace::CapturePlan captures() const override { return {}; }
    std::unique_ptr<Reader> open(const trace::TraceStart&) override {
        return std::make_unique<NothingToRead>();
    }
    bool reads_clock() const override { return true; }
    void look(const ClockLook& look) override;
    void end_sample(trace::SampleId, std::uint64_t) override {}
    void yield(Hotlists& into, Seen seen) override;

  private:
    using Key = std::tuple<std::string, ThreadState, std::string, std::optional<Location>>;
    using Column = std::map<Key, Statistics>;

    void halve();
    std::set<Key> told() const;

    FunctionMap& functions_;
    std::uint64_t width_ = 100;  // milliseconds
    std::vector<Column> columns_;
    model::Totals totals_;
};

extern const ProfileType timeline_type;

}  // namespace shadowprof::profile
