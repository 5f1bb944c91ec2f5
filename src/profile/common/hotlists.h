// profile: what engines saw becomes hotlists. One folder a profile type, which holds all that is
// particular to it, and the list of types in registry.h. It knows the Trace and the model's tables
// of fields, nothing of processes, engines or symbols.
//
// This file: what profilers yield, a hotlist of each type: keyed by trace::Location, complete
// (cutting to --limit happens when the profile is put together) and sorted.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "model/hotlist.h"
#include "model/statistics.h"
#include "trace/location.h"

namespace shadowprof::profile {

using model::Estimate;
using model::estimate_share;
using model::estimate_value_share;
using model::Seen;
using model::Statistics;
using model::Totals;
using shadowprof::Wide;
using trace::Location;

class Hotlists {
  public:
    template <class OfType>
    OfType& add(OfType list) {
        lists_.push_back(std::make_unique<OfType>(std::move(list)));
        return static_cast<OfType&>(*lists_.back());
    }
    // The hotlist of one profile type, or nullptr.
    template <class OfType>
    const OfType* find() const {
        for (const auto& list : lists_)
            if (list->key() == OfType::section_key) return static_cast<const OfType*>(list.get());
        return nullptr;
    }
    auto begin() const { return lists_.begin(); }
    auto end() const { return lists_.end(); }

  private:
    std::vector<std::unique_ptr<model::FoundSection>> lists_;
};

}  // namespace shadowprof::profile
