// What reports say of requests.
#pragma once

#include "model/shown_chapter.h"
#include "profile/request/request_section.h"

namespace shadowprof::profile {

model::ShownChapter request_chapter(const RequestSection& requests, const model::ChapterInputs& in);

}  // namespace shadowprof::profile
