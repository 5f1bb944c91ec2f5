#include "report/source_text.h"

#include <sys/stat.h>

#include <fstream>

#include "report/utf8.h"

namespace shadowprof::report {

namespace {

constexpr off_t largest_source = off_t{64} << 20;

std::vector<std::string> lines_of(const std::string& path) {
    std::vector<std::string> lines;
    struct stat status {};
    // A path from a profile may name a device or a pipe.
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size > largest_source)
        return lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
}

std::string with_tabs_expanded(const std::string& line) {
    std::string out;
    for (const char c : line) {
        if (c == '\t')
            out.append(4 - out.size() % 4, ' ');
        else if (c != '\r')
            out += c;
    }
    return out;
}

}  // namespace

std::string SourceText::line(const std::string& file, std::uint32_t number) {
    auto [entry, is_new] = files_.try_emplace(file);
    if (is_new) entry->second = lines_of(file);
    if (number == 0 || number > entry->second.size()) return {};
    return printable(with_tabs_expanded(entry->second[number - 1]));
}

}  // namespace shadowprof::report
