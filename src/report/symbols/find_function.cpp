#include "report/symbols/find_function.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "model/utf8.h"
#include "report/symbols/demangle.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

constexpr std::size_t names_suggested = 5;
constexpr std::size_t longest_compared = 64;

// The edit distance: how many letters must be changed, added or dropped.
std::size_t distance(std::string_view a, std::string_view b) {
    a = a.substr(0, longest_compared);
    b = b.substr(0, longest_compared);
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const auto replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

std::string nearest_names(const std::vector<FunctionChoice>& all, const std::string& wanted) {
    std::vector<std::pair<std::size_t, std::string>> near;
    for (const auto& f : all) {
        auto name = without_parameters(f.name);
        near.emplace_back(distance(name, wanted), std::move(name));
    }
    std::stable_sort(near.begin(), near.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> names;
    for (const auto& [d, name] : near) {
        if (names.size() == names_suggested) break;
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

// "scan" of "String#scan", "spend" of "Work.spend", "push" of "Queue::push(int)".
bool is_last_part(const std::string& name, const std::string& wanted) {
    const auto plain = without_parameters(name);
    return plain.size() > wanted.size() && plain.ends_with(wanted) &&
           std::string_view{".#:"}.find(plain[plain.size() - wanted.size() - 1]) !=
               std::string_view::npos;
}

}  // namespace

std::vector<FunctionChoice> functions_by_heat(const Profile& p) {
    std::map<std::pair<ModuleIndex, std::uint64_t>, FunctionChoice> found;
    const auto choice_at = [&](LocationIndex i) -> FunctionChoice* {
        const auto& l = p.at(i);
        if (!l.function_offset) return nullptr;
        auto& choice = found[{l.module, *l.function_offset}];
        if (choice.name.empty()) {
            choice.location = i;
            choice.name = l.function.empty() ? function_label(p, l) : printable(l.function);
        }
        return &choice;
    };
    for (LocationIndex i = 0; i < p.locations.size(); ++i) choice_at(i);
    if (p.find<MethodSection>()) {
        for (const auto& e : p.find<MethodSection>()->entries)
            if (auto* c = choice_at(e.function)) c->weight += e.instructions.count;
    } else if (p.find<PathSection>()) {
        for (const auto& e : p.find<PathSection>()->entries)
            for (const auto& b : e.blocks)
                if (auto* c = choice_at(b.start)) c->weight += e.statistics.count * b.instructions;
    } else if (p.find<EdgeSection>()) {
        for (const auto& e : p.find<EdgeSection>()->entries)
            if (auto* c = choice_at(e.from)) c->weight += e.statistics.count;
    } else if (p.find<ValueSection>()) {
        for (const auto& e : p.find<ValueSection>()->entries)
            if (auto* c = choice_at(e.location)) c->weight += e.all_executions();
    }
    std::vector<FunctionChoice> all;
    all.reserve(found.size());
    for (auto& [where, choice] : found) all.push_back(std::move(choice));
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.weight > b.weight; });
    return all;
}

std::vector<FunctionChoice> find_function(const Profile& profile, const std::string& wanted) {
    const auto all = functions_by_heat(profile);
    const auto matching = [&](auto matches) {
        std::vector<FunctionChoice> found;
        std::copy_if(all.begin(), all.end(), std::back_inserter(found),
                     [&](const auto& f) { return matches(f.name); });
        return found;
    };
    auto found = matching([&](const std::string& name) { return name == wanted; });
    if (found.empty())
        found = matching([&](const auto& name) { return without_parameters(name) == wanted; });
    if (found.empty() && wanted.find_first_of("*?") != wanted.npos)
        found = matching([&](const auto& name) {
            return ::fnmatch(wanted.c_str(), name.c_str(), 0) == 0 ||
                   ::fnmatch(wanted.c_str(), without_parameters(name).c_str(), 0) == 0;
        });
    if (found.empty())
        found = matching([&](const auto& name) { return is_last_part(name, wanted); });
    if (found.empty())
        found = matching([&](const auto& name) { return name.find(wanted) != name.npos; });
    if (!found.empty()) return found;
    if (all.empty()) throw UserError("the profile names no functions");
    throw UserError(fmt::format("no function in the profile is called '{}'; near are: {}",
                                printable(wanted), nearest_names(all, wanted)));
}

}  // namespace shadowprof::report
