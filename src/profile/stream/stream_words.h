// What reports say of hot data streams.
#pragma once

#include <string>

#include "model/shown_chapter.h"
#include "profile/stream/stream_section.h"

namespace shadowprof::profile {

// "table+16": the variable that the stream is in; empty if it has no name.
std::string stream_data_text(const model::Profile& profile,
                             const StreamShape<model::LocationIndex>& entry);

model::ShownChapter stream_chapter(const StreamSection& list, const model::ChapterInputs& inputs);

}  // namespace shadowprof::profile
