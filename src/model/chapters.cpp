#include "model/chapters.h"

#include <utility>
#include <vector>

#include "model/merge.h"
#include "model/renumber.h"

namespace shadowprof::model {

namespace {

constexpr std::size_t times_as_many = 4;

}  // namespace

void keep_strongest(Profile& p, const KeepOptions& options) {
    if (options.limit == 0) return;
    for (const auto& section : p.sections) section->keep_strongest(options);
    for (const auto& part : p.parts)
        for (const auto& section : part.sections) section->keep_strongest(options);
    drop_unused(p);
}

KeepOptions Chapters::of_one() const {
    auto options = of_all_;
    options.limit *= times_as_many;
    options.values_per_location *= times_as_many;
    return options;
}

void Chapters::add(Profile chapter) {
    static_cast<RunFacts&>(chapter) = {};
    Merger merger;
    if (sum_) {
        static_cast<RunFacts&>(*sum_) = {};
        merger.add({"the chapters before", std::move(*sum_)});
    }
    merger.add({"a chapter", std::move(chapter)});
    sum_ = merger.take();
    keep_strongest(*sum_, of_one());
    ++so_far_;
}

Profile Chapters::take() {
    keep_strongest(*sum_, of_all_);
    return std::move(*sum_);
}

Profile Chapters::end(Profile last) {
    if (!sum_) return last;
    RunFacts facts = last;
    add(std::move(last));
    keep_strongest(*sum_, of_all_);
    static_cast<RunFacts&>(*sum_) = std::move(facts);
    return std::move(*sum_);
}

}  // namespace shadowprof::model
