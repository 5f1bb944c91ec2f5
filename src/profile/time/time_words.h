// What reports say of where the time goes.
#pragma once

#include "model/shown_chapter.h"
#include "profile/time/time_section.h"

namespace shadowprof::profile {

model::ShownChapter time_chapter(const TimeSection& time, const model::ChapterInputs& in);

}  // namespace shadowprof::profile
