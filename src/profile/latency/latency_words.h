// What reports say of loads and their times.
#pragma once

#include <string>

#include "model/shown_chapter.h"
#include "profile/latency/latency_section.h"

namespace shadowprof::profile {

model::ShownChapter latency_chapter(const LatencySection& list, const model::ChapterInputs& in);

// How long all loads waited, estimated from the timed ones, including loads in dropped entries.
double all_waiting_ns(const LatencySection& list);

// Where the model says its data came from, the farthest first: "memory 97 %, L3 3 %".
std::string levels_text(const LatencySection::Entry& entry);

}  // namespace shadowprof::profile
