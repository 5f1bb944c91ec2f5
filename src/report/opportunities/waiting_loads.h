// Loads that wait for their data, and what is known about their addresses beforehand.
//
// A nanosecond of waiting counts as three instructions, which is what a processor executes in a
// nanosecond when nothing waits. So a load touches its share of the sum of all instructions and all
// waiting. Loads were timed one by one. If the waiting of several loads overlaps in the program, it
// costs the program less; the clock tells (opportunities.cpp).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/opportunities/evidence.h"
#include "report/opportunities/finding.h"

namespace shadowprof::report {

// How a load's addresses come about.
struct AddressTrail {
    enum class Kind {
        step,     // the same number of bytes further each time
        index,    // from what another load loads, whose own addresses go by steps
        pointer,  // from what a load loads that must wait for its own address in turn
        nowhere,  // not known
    } kind = Kind::nowhere;
    std::optional<LocationIndex> from;  // of index and pointer: the load whose result it is
};
class AddressTrails {
  public:
    explicit AddressTrails(const LatencySection& list);
    AddressTrail of(const LatencyEntry& load) const;

  private:
    std::map<LocationIndex, const LatencyEntry*> busiest_at_;
};

// Loads of one line of source: a loop that was unrolled has several of one kind.
struct WaitingLoads {
    std::vector<const LatencyEntry*> loads;  // the one that waits most is first
    AddressTrail trail;                      // of the first
    Share of_waiting;
    double touches = 0;
};
// The loads that wait long enough to matter and whose data, by the model, are outside the near
// caches. There is a group for each line and kind of trail.
std::vector<WaitingLoads> waiting_loads(const Evidence& evidence);

// The group as a finding. `why` says what is known about the addresses: "each 4160 bytes after the
// last".
Finding waiting_finding(const Evidence& evidence, const WaitingLoads& loads,
                        const std::string& why);

}  // namespace shadowprof::report
