// Items of a profile that others refer to by number, its locations and modules, are put in order or
// left out: where each went.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "model/profile.h"

namespace shadowprof::model {

using MovedTo = std::vector<std::uint32_t>;  // by the number that an item had

// `is_before` compares numbers of items.
template <class Item, class Before>
MovedTo put_in_order(std::vector<Item>& items, Before is_before) {
    std::vector<std::uint32_t> order(items.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), is_before);
    MovedTo moved_to(items.size());
    std::vector<Item> in_order;
    in_order.reserve(items.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
        moved_to[order[i]] = i;
        in_order.push_back(std::move(items[order[i]]));
    }
    items = std::move(in_order);
    return moved_to;
}

// Of what is left out it says nothing.
template <class Item>
MovedTo keep_used(std::vector<Item>& items, const std::vector<bool>& used) {
    MovedTo moved_to(items.size());
    std::uint32_t kept = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (!used[i]) continue;
        if (kept != i) items[kept] = std::move(items[i]);
        moved_to[i] = kept++;
    }
    items.resize(kept);
    return moved_to;
}

inline MovedTo sort_modules(std::vector<Module>& modules) {
    return put_in_order(modules, [&](auto a, auto b) {
        return std::tie(modules[a].path, modules[a].build_id) <
               std::tie(modules[b].path, modules[b].build_id);
    });
}

inline void renumber_modules(Profile& p, const MovedTo& moved_to) {
    for (auto& l : p.locations) l.module = moved_to[l.module];
}

inline void drop_unused_modules(Profile& p) {
    std::vector<bool> used(p.modules.size());
    for (const auto& l : p.locations) used[l.module] = true;
    renumber_modules(p, keep_used(p.modules, used));
}

// Locations and modules.
inline void drop_unused(Profile& p) {
    std::vector<bool> used(p.locations.size());
    p.each_location([&](LocationIndex& i) { used[i] = true; });
    const auto locations = keep_used(p.locations, used);
    p.each_location([&](LocationIndex& i) { i = locations[i]; });
    drop_unused_modules(p);
}

}  // namespace shadowprof::model
