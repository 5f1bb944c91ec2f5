#include "inject/call_finisher.h"

#include <cstring>
#include <utility>
#include <vector>

#include "proc/memory.h"

namespace shadowprof::inject {

// A handler may run in the midst of the code: that its thread is seen elsewhere says nothing before
// the word says that it is complete.
bool CallFinisher::is_free(std::size_t index) {
    auto& use = uses_.at(index);
    return use.number == 0 || (load_acquire(area_.complete_word(index)) == use.number &&
                               use.visit.is_over(process_, area_.place()));
}

bool CallFinisher::is_in_use() {
    for (std::size_t index = 0; index < uses_.size(); ++index)
        if (!is_free(index)) return true;
    return false;
}

CallFinisher::Use* CallFinisher::interrupted_once_more(const ptrace::Thread& stopped,
                                                       Address stands_at) {
    for (std::size_t index = 0; index < uses_.size(); ++index) {
        auto& use = uses_.at(index);
        if (use.number != 0 && use.visit.thread() == stopped.tid() &&
            stands_at == RestOfCall::behind_call(area_.place_of_rest(index)))
            return &use;
    }
    return nullptr;
}

// A thread that makes one such call after the other computes too little for its visits to be over
// by that.
void CallFinisher::stands_elsewhere(const ptrace::Thread& stopped) {
    for (std::size_t index = 0; index < uses_.size(); ++index) {
        auto& use = uses_.at(index);
        if (use.number != 0 && use.visit.thread() == stopped.tid() &&
            load_acquire(area_.complete_word(index)) == use.number)
            use.number = 0;
    }
}

bool CallFinisher::finish(ptrace::Thread& stopped, RestOfCall rest) {
    if (!area_.place().contains(rest.program.rip())) stands_elsewhere(stopped);
    std::size_t index = 0;
    while (index < uses_.size() && !is_free(index)) ++index;
    if (index == uses_.size()) return false;
    auto* const before = interrupted_once_more(stopped, rest.program.rip());
    if (before != nullptr) rest.continues(before->what);
    auto& use = uses_.at(index);
    const auto place = area_.place_of_rest(index);
    const auto number = ++so_far_;
    const auto code = rest.code(place, area_.place_of_complete_word(index), number);
    std::memcpy(area_.rest(index), code.data(), code.size());
    // After an exec the area is not there any more.
    std::vector<std::byte> seen(code.size());
    if (proc::Memory{stopped.tid()}.read(place, seen) != seen.size() || seen != code) return false;
    use.visit.begin(stopped.tid());
    use.number = number;
    if (!stopped.set_registers(rest.at(place))) {
        use.number = 0;
        return false;
    }
    use.what = std::move(rest);
    if (before != nullptr) before->number = 0;
    return true;
}

}  // namespace shadowprof::inject
