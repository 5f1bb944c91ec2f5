// Profile type request: what the requests cost that threads work for, where the program publishes
// them (trace/request.h). Time comes from the clock, each look with the request that was read.
// Instructions come from samples: those of a sample are the request's with which it began. So a
// sample that is longer than requests gives to each what is usual for all.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "profile/common/executions.h"
#include "profile/common/open_samples.h"
#include "profile/common/profile_type.h"
#include "profile/common/profiler.h"
#include "profile/common/tally.h"
#include "profile/request/reads_requests.h"
#include "profile/request/request_section.h"

namespace shadowprof::profile {

class RequestProfiler : public Profiler, public ReadsRequests {
  public:
    RequestProfiler(const trace::BlockTable& blocks, FunctionMap& functions)
        : blocks_(blocks), functions_(functions) {}

    std::string_view name() const override { return "request"; }
    trace::CapturePlan captures() const override { return {}; }
    std::unique_ptr<Reader> open(const trace::TraceStart& start) override;
    void count(trace::SampleId sample, const Counts& counts) override;
    void see_request(trace::SampleId sample, const trace::RequestSight& sight) override;
    void end_sample(trace::SampleId sample, std::uint64_t weight) override;
    bool reads_clock() const override { return true; }
    void look_for_request(const ClockLook& look, const trace::RequestSight& sight) override;
    void yield(Hotlists& into, Seen seen) override;

  private:
    struct Open {
        ExecutionsOfSample executions;
        std::vector<trace::RequestSight> sights;
    };
    class BlockReader;
    // Of samples it is the request alone: what one sample has of it is one count.
    struct Key {
        std::uint32_t request = 0;  // its number
        std::string thread, call;
        std::vector<Location> frames;
        bool operator==(const Key&) const = default;
    };
    struct KeyHash {
        std::size_t operator()(const Key& key) const;
    };
    std::uint32_t number_of(const std::shared_ptr<const trace::Request>& request);
    std::vector<RequestHotlist::Entry> entries() const;

    const trace::BlockTable& blocks_;
    FunctionMap& functions_;
    OpenSamples<Open> samples_;
    std::vector<trace::Request> requests_{trace::Request{}};  // the first: none
    std::map<std::string, std::uint32_t> numbers_;
    Tally<Key, KeyHash> on_processor_, waiting_, instructions_;
    Random random_{4947};
};

}  // namespace shadowprof::profile
