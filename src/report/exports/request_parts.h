// The time of stacks, divided by the requests that it was for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profile/request/request_section.h"
#include "report/model/profile.h"

namespace shadowprof::report {

using RequestEntry = profile::RequestSection::Entry;

class RequestParts {
  public:
    explicit RequestParts(const Profile& profile);

    // Parts of the `nanoseconds` of a stack, of which all but the last are of a request. What one
    // was told is not told again.
    struct Part {
        const RequestEntry* request = nullptr;
        std::uint64_t nanoseconds = 0;
    };
    std::vector<Part> of(const TimeSection::Entry& stack, std::uint64_t nanoseconds);

  private:
    std::map<std::pair<std::string, std::string>, std::vector<Part>> left_;  // by thread and call
};

}  // namespace shadowprof::report
