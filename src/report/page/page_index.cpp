#include "report/page/page_index.h"

#include "model/utf8.h"
#include "report/text/format.h"

namespace shadowprof::report {

PageIndex::PageIndex(const Profile& profile)
    : p_(profile), location_index_(profile.locations.size()) {}

std::uint64_t PageIndex::string(const std::string& text) {
    const auto [entry, is_new] = string_index_.try_emplace(text, strings_.size());
    if (is_new) strings_.push_back(&entry->first);
    return entry->second;
}

std::uint64_t PageIndex::location(LocationIndex i) {
    auto& known = location_index_[i];
    if (known == 0) {
        locations_.push_back(i);
        known = locations_.size();
    }
    return known - 1;
}

void PageIndex::write(JsonOutput& out) {
    out.break_line();
    out.key("locations").open_array();
    for (const auto i : locations_) {
        const auto& l = p_.at(i);
        out.break_line();
        out.open_array();
        out.number(string(function_label(p_, l)));
        out.number(string(place_label(p_, l)));
        out.number(string(printable(l.text)));
        out.number(l.module);
        out.number(l.offset);
        l.function_offset ? out.number(*l.function_offset) : out.null();
        out.close_array();
    }
    out.close_array();
    out.break_line();
    out.key("strings").open_array();
    for (const auto* s : strings_) out.text(*s);
    out.close_array();
}

}  // namespace shadowprof::report
