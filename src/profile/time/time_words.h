// What reports say of where the time goes.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "model/shown_chapter.h"
#include "profile/time/time_section.h"

namespace shadowprof::profile {

// Functions as they are told of in reports of time: code that was made at run time and has no name
// is one.
using FunctionKey = std::tuple<model::ModuleIndex, bool, std::uint64_t, std::string>;
FunctionKey function_of(const model::Profile& profile, const model::Location& location);
model::ShownCell name_of_function(const model::Profile& profile, model::LocationIndex place);

// Whether it is a line of a function that an interpreter executes, and no machine code.
bool is_interpreted(const model::Profile& profile, const model::Location& location);

model::ShownChapter time_chapter(const TimeSection& time, const model::ChapterInputs& in);

}  // namespace shadowprof::profile
