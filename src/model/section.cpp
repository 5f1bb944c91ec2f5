#include "model/section.h"

#include <algorithm>

namespace shadowprof::model {

Sections::Sections(const Sections& other) {
    for (const auto& part : other.parts_) parts_.push_back(part->clone());
}

bool Sections::operator==(const Sections& other) const {
    return std::equal(parts_.begin(), parts_.end(), other.parts_.begin(), other.parts_.end(),
                      [](const auto& a, const auto& b) { return a->equals(*b); });
}

const Section* Sections::find(std::string_view key) const {
    for (const auto& part : parts_)
        if (part->key() == key) return part.get();
    return nullptr;
}

Section& Sections::put(std::unique_ptr<Section> section) {
    for (auto& part : parts_)
        if (part->key() == section->key()) return *(part = std::move(section));
    return *parts_.emplace_back(std::move(section));
}

void Sections::remove(std::string_view key) {
    std::erase_if(parts_, [&](const auto& part) { return part->key() == key; });
}

void Sections::put_in_order(SectionTypes types) {
    const auto place_of = [&](const auto& part) {
        return std::find_if(types.begin(), types.end(),
                            [&](const auto& type) { return type.key == part->key(); }) -
               types.begin();
    };
    std::stable_sort(parts_.begin(), parts_.end(),
                     [&](const auto& a, const auto& b) { return place_of(a) < place_of(b); });
}

}  // namespace shadowprof::model
