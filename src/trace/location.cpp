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

}  // namespace shadowprof::trace
