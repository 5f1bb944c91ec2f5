#include "profile/hazard/hazard_section.h"

#include <algorithm>

namespace shadowprof::profile {

void CostsCodec::write(model::JsonOutput& out, const HazardCosts& costs) {
    out.open_object();
    for (const auto& [kind, name] : names_of(Hazard{})) {
        const auto& of_kind = costs.nanoseconds[static_cast<std::size_t>(kind)];
        out.key(name).open_array();
        for (std::size_t i = 0; i < (is_pair(kind) ? of_kind.size() : 1); ++i)
            out.rounded(of_kind[i]);
        out.close_array();
    }
    out.close_object();
}

void CostsCodec::read(model::JsonCursor& in, HazardCosts& costs) {
    in.each_key([&](const std::string& key) {
        auto* of_kind = static_cast<HazardCosts::ByDistance*>(nullptr);
        for (const auto& [kind, name] : names_of(Hazard{}))
            if (name == key) of_kind = &costs.nanoseconds[static_cast<std::size_t>(kind)];
        if (of_kind == nullptr) in.fail("an unknown kind of hazard");
        std::size_t n = 0;
        in.array([&] {
            if (n == of_kind->size()) in.fail("too many costs of a hazard");
            const auto cost = in.real();
            if (!(cost >= 0)) in.fail("a hazard with a cost below 0");
            std::fill(of_kind->begin() + static_cast<std::ptrdiff_t>(n++), of_kind->end(), cost);
        });
    });
}

std::string CostsCodec::schema() {
    model::ObjectSchema object;
    for (const auto& [kind, name] : names_of(Hazard{}))
        object.add(name, R"({"type": "array", "items": {"type": "number", "minimum": 0}})", true);
    return object.take();
}

void merge_costs(HazardCosts& into, const HazardCosts& other) {
    for (std::size_t kind = 0; kind < machine::hazard_kinds; ++kind)
        for (std::size_t i = 0; i < HazardCosts::distances.size(); ++i)
            into.nanoseconds[kind][i] =
                std::max(into.nanoseconds[kind][i], other.nanoseconds[kind][i]);
}

}  // namespace shadowprof::profile
