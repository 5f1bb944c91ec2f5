// The profile types there are. types.txt is the only list of them: the names that --profile takes,
// the sections of profile files, their schema and their order all follow from it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile_file.h"
#include "profile/common/profile_type.h"

namespace shadowprof::profile {

// In the order of the profile file.
std::span<const ProfileType* const> profile_types();
model::SectionTypes section_types();

// What --profile may name, and what is profiled without it.
std::vector<std::string> profile_names();
std::vector<std::string> default_profile_names();

// The profile types asked for, and those that are always collected. Throws UserError for a name
// that is none. Blocks and functions must outlive them. One thread at a time uses a profiler and
// its readers.
std::vector<std::unique_ptr<Profiler>> make_profilers(const ProfileOptions& options,
                                                      const trace::BlockTable& blocks,
                                                      FunctionMap& functions);

// What engines have to capture for them.
trace::CapturePlan captures_of(const std::vector<std::unique_ptr<Profiler>>& profilers);

// Profile files with sections of all these types; see model/profile_file.h.
model::Profile from_json(std::string_view json);
model::Profile read_profile(const std::string& path);
std::string profile_schema();

}  // namespace shadowprof::profile
