#include "report/symbols/place_names.h"

#include <fnmatch.h>

#include <algorithm>

#include "report/symbols/demangle.h"

namespace shadowprof::report {

namespace {

using profile::NameOf;

bool matches(const std::string& glob, const std::string& name) {
    return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

bool is_function(const std::string& glob, std::string name) {
    constexpr std::string_view stub = "@plt";
    if (name.empty()) return false;
    if (matches(glob, name)) return true;
    if (name.ends_with(stub)) name.resize(name.size() - stub.size());
    return matches(glob, name) || matches(glob, without_parameters(name));
}

bool is_path(const std::string& glob, const std::string& path) {
    return !path.empty() && (matches(glob, path) || matches(glob, model::file_name(path)));
}

}  // namespace

SymbolPlaceNames::Known& SymbolPlaceNames::known(NameOf what, const std::string& glob,
                                                 const trace::Location& place,
                                                 const trace::Module& module) {
    auto& known = known_[std::to_string(static_cast<int>(what)) + ' ' +
                         std::to_string(static_cast<std::uint32_t>(place.module)) + ' ' + glob];
    if (std::exchange(known.is_looked_up, true)) return known;
    if (what == NameOf::module) known.all = is_path(glob, module.path);
    if (what != NameOf::function) return known;
    for (const auto& function : symbols_.functions_of(module))
        if (is_function(glob, function.name))
            known.ranges.emplace_back(function.begin, function.end);
    std::sort(known.ranges.begin(), known.ranges.end());
    return known;
}

bool SymbolPlaceNames::fits(NameOf what, const std::string& glob, const trace::Location& place) {
    const auto module = modules_.at(place.module);
    const std::lock_guard lock(mutex_);
    auto& known = this->known(what, glob, place, module);
    if (what == NameOf::module) return known.all;
    const bool is_of_file = module.path.starts_with('/');
    if (what == NameOf::function && is_of_file) {
        const auto after = std::upper_bound(
            known.ranges.begin(), known.ranges.end(), place.offset,
            [](std::uint64_t offset, const auto& range) { return offset < range.first; });
        return after != known.ranges.begin() && place.offset < std::prev(after)->second;
    }
    // What code made at run time is called may become known later.
    const auto look = [&] {
        if (what == NameOf::file) return is_path(glob, symbols_.line_at(module, place.offset).file);
        const auto function = symbols_.function_at(module, place.offset);
        return function && is_function(glob, function->name);
    };
    if (!is_of_file) return look();
    const auto [found, is_new] = known.by_offset.try_emplace(place.offset);
    if (is_new) found->second = look();
    return found->second;
}

profile::PlaceName SymbolPlaceNames::name_of(const trace::Location& place) {
    const auto module = modules_.at(place.module);
    profile::PlaceName name{.image = module.path};
    if (const auto function = symbols_.function_at(module, place.offset)) {
        name.function = function->name;
        name.offset = place.offset - function->begin;
    }
    return name;
}

}  // namespace shadowprof::report
