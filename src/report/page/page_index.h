// Strings and locations of the page's data: each is written once, numbered as they come up.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/json_output.h"
#include "report/model/profile.h"

namespace shadowprof::report {

class PageIndex {
  public:
    explicit PageIndex(const Profile& profile);

    std::uint64_t string(const std::string& text);
    std::uint64_t location(LocationIndex i);

    // The keys "strings" and "locations". Nothing new is known afterwards.
    void write(JsonOutput& out);

  private:
    const Profile& p_;
    std::unordered_map<std::string, std::uint64_t> string_index_;
    std::vector<const std::string*> strings_;
    std::vector<std::uint64_t> location_index_;  // plus one; 0: not used yet
    std::vector<LocationIndex> locations_;
};

}  // namespace shadowprof::report
