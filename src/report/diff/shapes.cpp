#include "report/diff/shapes.h"

#include <fmt/format.h>

#include <utility>

#include "model/utf8.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

// "libz.so.1.2.13" -> "libz.so". The program's name is empty, so that it may be renamed.
std::string module_shape(const Profile& p, const Module& m) {
    auto name = file_name(m.path);
    if (name == program_of(p)) return {};
    if (const auto so = name.find(".so."); so != name.npos) name.resize(so + 3);
    return name;
}

using FunctionEntry = std::pair<ModuleIndex, std::uint64_t>;

// The line of each function's first instruction, if the profile has that place.
std::map<FunctionEntry, const Location*> entries_of(const Profile& p) {
    std::map<FunctionEntry, const Location*> entries;
    for (const auto& l : p.locations)
        if (l.function_offset == l.offset && !l.return_address && l.inlined.empty() &&
            !l.file.empty())
            entries.emplace(FunctionEntry{l.module, l.offset}, &l);
    return entries;
}

}  // namespace

std::string program_of(const Profile& p) {
    return p.targets.empty() || p.targets[0].command.empty() ? std::string()
                                                             : file_name(p.targets[0].command[0]);
}

Shapes::Shapes(const std::vector<const Profile*>& profiles) {
    for (const auto* p : profiles)
        for (const auto& m : p->modules) builds_[module_shape(*p, m)].insert(m.build_id);
}

bool Shapes::is_same_build(const std::string& module) const {
    const auto& builds = builds_.at(module);
    return builds.size() == 1 && !builds.begin()->empty();
}

profile::SourceNames Shapes::names_of(const Profile& p) const {
    const auto entries = entries_of(p);
    profile::SourceNames names;
    names.function.reserve(p.locations.size());
    names.place.reserve(p.locations.size());
    for (const auto& l : p.locations) {
        const auto module = module_shape(p, p.modules[l.module]);
        const bool same_build = is_same_build(module);
        auto function = printable(l.function);
        if (function.empty())
            function = same_build ? hex_text(l.function_offset.value_or(l.offset)) : "unnamed code";
        if (!module.empty()) function += " (" + module + ")";

        auto place = function;
        if (same_build) {
            const auto into = l.offset - l.function_offset.value_or(l.offset);
            if (into != 0) place += "+" + hex_text(into);
        } else if (!l.file.empty()) {
            const auto entry =
                l.function_offset ? entries.find({l.module, *l.function_offset}) : entries.end();
            if (entry != entries.end() && entry->second->file == l.file &&
                entry->second->line <= l.line)
                place += fmt::format(":+{}", l.line - entry->second->line);
            else
                place += fmt::format(" {}:{}", file_name(l.file), l.line);
        }
        names.function.push_back(std::move(function));
        names.place.push_back(std::move(place));
    }
    return names;
}

}  // namespace shadowprof::report
