// What reports say of hazards.
#pragma once

#include <string_view>

#include "model/shown_chapter.h"
#include "profile/hazard/hazard_section.h"

namespace shadowprof::profile {

std::string_view hazard_words(Hazard kind);

// About what part of the program's time such picoseconds are. How long it took is not known in
// every mode, so instructions stand for it.
double share_of_time(double cost_ps, const HazardSection& list);

model::ShownChapter hazard_chapter(const HazardSection& list, const model::ChapterInputs& inputs);

}  // namespace shadowprof::profile
