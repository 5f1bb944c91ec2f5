#include "report/symbols/runtime_names.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace shadowprof::report {

void RuntimeNames::read_what_is_new() {
    struct stat status {};
    if (::stat(path_.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    if (static_cast<std::uint64_t>(status.st_size) <= read_to_) return;
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(read_to_));
    std::string line;
    while (std::getline(file, line) && !file.eof()) {  // without its newline the line is incomplete
        read_to_ += line.size() + 1;
        std::istringstream fields(line);
        std::uint64_t begin = 0, size = 0;
        std::string name;
        if (fields >> std::hex >> begin >> size && std::getline(fields >> std::ws, name))
            functions_.push_back({name, begin, begin + size});
    }
    // Of several functions at one address, the last line describes the one that is there now.
    std::stable_sort(functions_.begin(), functions_.end(),
                     [](const auto& a, const auto& b) { return a.begin < b.begin; });
    const auto kept = std::unique(functions_.rbegin(), functions_.rend(),
                                  [](const auto& a, const auto& b) { return a.begin == b.begin; });
    functions_.erase(functions_.begin(), kept.base());
}

const Function* RuntimeNames::find(std::uint64_t address) {
    if (path_.empty()) return nullptr;
    const auto look = [&]() -> const Function* {
        const auto after =
            std::upper_bound(functions_.begin(), functions_.end(), address,
                             [](std::uint64_t a, const Function& f) { return a < f.begin; });
        if (after == functions_.begin() || std::prev(after)->end <= address) return nullptr;
        return &*std::prev(after);
    };
    if (const Function* known = look()) return known;
    read_what_is_new();
    return look();
}

}  // namespace shadowprof::report
