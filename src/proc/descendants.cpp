#include "proc/descendants.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <utility>

#include "proc/proc_text.h"
#include "proc/tuning.h"

namespace shadowprof::proc {

namespace {

std::vector<pid_t> all_processes() {
    std::vector<pid_t> all;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder{opendir("/proc"), closedir};
    if (!folder) return all;
    while (const auto* const entry = readdir(folder.get())) {
        pid_t pid = 0;
        const std::string_view name = entry->d_name;
        if (std::from_chars(name.data(), name.data() + name.size(), pid).ptr == name.end())
            all.push_back(pid);
    }
    return all;
}

// Threads have such files as well.
bool is_process(pid_t number) {
    const auto status = read_proc_file(fmt::format("/proc/{}/status", number));
    return status_field(status, "Tgid") == std::to_string(number);
}

}  // namespace

Descendants::Descendants(pid_t ancestor, bool is_new) {
    if (const auto birth = birth_of(ancestor)) known_[ancestor] = birth->started;
    if (is_new) newest_ = newest_before_ = ancestor;
}

// The number that was given last, to a process or a thread.
pid_t Descendants::newest_number() {
    const auto text = last_number_.read();
    const auto begin = text.rfind(' ') + 1;
    pid_t number = -1;
    std::from_chars(text.data() + begin, text.data() + text.size(), number);
    return number;
}

std::vector<pid_t> Descendants::candidates() {
    const auto newest = newest_number();
    const auto since = std::exchange(newest_before_, std::exchange(newest_, newest));
    if (newest < 0 || since < 0 || newest < since ||
        newest - since > tuning::most_numbers_looked_at)
        return all_processes();
    std::vector<pid_t> numbers;
    for (auto n = since + 1; n <= newest; ++n) numbers.push_back(n);
    return numbers;
}

std::vector<Birth> Descendants::look() {
    std::vector<Birth> births, of_others;
    for (const auto number : candidates()) {
        if (known_.contains(number)) continue;
        if (const auto birth = birth_of(number)) of_others.push_back(*birth);
    }
    // A child may have the lesser number, after the greatest one there is.
    for (bool found = true; found;) {
        found = false;
        std::erase_if(of_others, [&](const Birth& birth) {
            const auto parent = known_.find(birth.parent);
            if (parent == known_.end() || birth.started < parent->second) return false;
            if (is_process(birth.pid)) {
                known_[birth.pid] = birth.started;
                births.push_back(birth);
                found = true;
            }
            return true;
        });
    }
    return births;
}

}  // namespace shadowprof::proc
