// A session's profile that comes in chapters (sampling/chapter.h): their sum, in bounded memory.
//
// Each keeps several times as many entries as the whole will have. What is strong in the whole is
// so in some of them, and where it is too weak to be kept it counts as unknown.
#pragma once

#include <optional>

#include "model/profile.h"

namespace shadowprof::model {

// What is too weak to be kept counts as unknown.
void keep_strongest(Profile& profile, const KeepOptions& options);

class Chapters {
  public:
    explicit Chapters(const KeepOptions& of_all) : of_all_(of_all) {}

    // What a chapter is to keep that is not the only one.
    KeepOptions of_one() const;
    // Whatever its facts are. One after the other, on any thread.
    void add(Profile chapter);
    std::size_t so_far() const { return so_far_; }
    KeepOptions of_last() const { return so_far_ > 0 ? of_one() : of_all_; }
    // With the last, whose facts are those of the whole.
    Profile end(Profile last);
    // Those that were added; one at least. Its facts are of nothing.
    Profile take();

  private:
    const KeepOptions of_all_;
    std::size_t so_far_ = 0;
    std::optional<Profile> sum_;
};

}  // namespace shadowprof::model
