#include "report/symbols/source_text.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "model/utf8.h"

namespace shadowprof::report {

using model::printable;

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

std::string found_path(const std::string& file, const std::string& module_path) {
    const std::filesystem::path path(file);
    std::error_code error;
    if (path.is_absolute() || std::filesystem::exists(path, error)) return file;
    auto above = std::filesystem::path(module_path);
    while (above.has_relative_path()) {
        above = above.parent_path();
        if (const auto candidate = above / path; std::filesystem::exists(candidate, error))
            return candidate.lexically_normal();
    }
    return file;
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

const std::vector<std::string>& SourceText::lines(const std::string& file) {
    auto [entry, is_new] = files_.try_emplace(file);
    if (is_new) entry->second = lines_of(found_path(file, module_path_));
    return entry->second;
}

std::string SourceText::line(const std::string& file, std::uint32_t number) {
    const auto& all = lines(file);
    if (number == 0 || number > all.size()) return {};
    return printable(with_tabs_expanded(all[number - 1]));
}

bool SourceText::has(const std::string& file) {
    return !lines(file).empty();
}

}  // namespace shadowprof::report
