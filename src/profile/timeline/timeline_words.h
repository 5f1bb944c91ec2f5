// A timeline for people: the program's phases.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/shown_chapter.h"
#include "profile/timeline/timeline_section.h"

namespace shadowprof::profile {

// Columns that follow each other, and are alike as far as can be told from so few looks.
struct Phase {
    std::uint64_t first = 0, end = 0;  // columns
    std::uint64_t looked_at = 0;       // of them: those of which anything is known
    struct Part {
        std::optional<model::LocationIndex> function;
        std::uint64_t nanoseconds = 0, looks = 0;
    };
    std::vector<Part> parts;  // of all threads on processors, the longest first

    std::uint64_t on_processors() const;  // nanoseconds
};
// What `one_of` tells the same place of is one function.
std::vector<Phase> phases_of(
    const TimelineSection& timeline,
    const std::function<model::LocationIndex(model::LocationIndex)>& one_of);

model::ShownChapter timeline_chapter(const TimelineSection& timeline,
                                     const model::ChapterInputs& inputs);

}  // namespace shadowprof::profile
