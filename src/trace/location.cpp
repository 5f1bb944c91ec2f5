#include "trace/location.h"

#include <algorithm>

#include "base/error.h"

namespace shadowprof::trace {

ModuleId ModuleTable::intern(const Module& module) {
    const std::lock_guard lock(mutex_);
    const auto known = std::find(modules_.begin(), modules_.end(), module);
    const auto index = known - modules_.begin();
    if (known == modules_.end()) modules_.push_back(module);
    return static_cast<ModuleId>(index);
}

Module ModuleTable::at(ModuleId id) const {
    const std::lock_guard lock(mutex_);
    const auto index = static_cast<std::size_t>(id);
    SHADOWPROF_ASSERT(index < modules_.size(), "module " + std::to_string(index));
    return modules_[index];
}

std::vector<Module> ModuleTable::all() const {
    const std::lock_guard lock(mutex_);
    return modules_;
}

namespace {

constexpr unsigned bits_of_line = 24;

// FNV-1a: it must not depend on the build or the library.
std::uint64_t stable_hash(const InterpretedFunction& function) {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto text =
        function.file + '\0' + function.name + '\0' + std::to_string(function.first_line);
    for (const unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
    return mix_bits(hash);
}

}  // namespace

Location ModuleTable::intern(ModuleId of_language, const InterpretedFunction& function) {
    const std::lock_guard lock(mutex_);
    constexpr std::uint64_t least = 1;
    for (auto number = std::max(stable_hash(function) >> bits_of_line, least);; ++number) {
        const Location begin{of_language, number << bits_of_line, 0};
        const auto [known, is_new] = interpreted_.try_emplace(begin, function);
        if (is_new || known->second == function) return begin;
    }
}

std::optional<ModuleTable::InterpretedPlace> ModuleTable::interpreted_at(
    const Location& place) const {
    const std::lock_guard lock(mutex_);
    const Location begin{place.module, place.offset >> bits_of_line << bits_of_line, 0};
    const auto known = interpreted_.find(begin);
    if (known == interpreted_.end() || place.content != 0) return {};
    return InterpretedPlace{known->second, begin};
}

}  // namespace shadowprof::trace
