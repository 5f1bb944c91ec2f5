#include "report/symbols/runtime_names.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "model/utf8.h"

namespace shadowprof::report {

namespace {

// Some hundred times what large programs in Java and JavaScript publish. Reading as much takes less
// than a second.
constexpr std::int64_t most_bytes = 64 << 20;
constexpr std::size_t most_lines = 1'000'000;
constexpr std::size_t longest_line = 1024;  // what is beyond is cut off

// A hexadecimal number, and the spaces before it.
bool take_number(std::string_view& text, std::uint64_t& number) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.starts_with("0x")) text.remove_prefix(2);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc{} && text.starts_with(' ');
}

}  // namespace

void RuntimeNames::take_line(std::string_view line) {
    std::uint64_t begin = 0, size = 0;
    if (!take_number(line, begin) || !take_number(line, size)) return;
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty()) return;
    // Of several functions at one address, the last line describes the one that is there now.
    functions_[begin] = {model::printable(line), begin, begin + std::min(size, ~begin)};
}

void RuntimeNames::take(std::string_view text) {
    while (!text.empty() && lines_ < most_lines) {
        const auto end = std::min(text.find('\n'), text.size());
        unfinished_ += text.substr(0, std::min(end, longest_line - unfinished_.size()));
        if (end == text.size()) return;
        take_line(unfinished_);
        unfinished_.clear();
        ++lines_;
        text.remove_prefix(end + 1);
    }
}

void RuntimeNames::read_on(int file, std::int64_t size) {
    const auto end = std::min(size, most_bytes);
    std::string text;
    while (looked_to_ < end && lines_ < most_lines) {
        text.resize(static_cast<std::size_t>(std::min<std::int64_t>(end - looked_to_, 1 << 20)));
        const auto got = ::pread(file, text.data(), text.size(), looked_to_);
        if (got <= 0) break;
        take(std::string_view(text).substr(0, static_cast<std::size_t>(got)));
        looked_to_ += got;
    }
    why_not_all_.clear();
    if (size > most_bytes || lines_ == most_lines)
        why_not_all_ =
            fmt::format("{} is too large: code has the names of its first {} lines", path_, lines_);
}

void RuntimeNames::read_what_is_new() {
    const int file =
        ::open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file < 0) return;
    struct stat status {};
    if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode))
        why_not_all_ = fmt::format("{} is no file: it names no code", path_);
    else if (status.st_uid != owner_ && status.st_uid != 0)
        why_not_all_ =
            fmt::format("{} is another user's than the program: it names no code", path_);
    else
        read_on(file, status.st_size);
    ::close(file);
}

std::string RuntimeNames::why_not_all() {
    if (!path_.empty()) read_what_is_new();
    return why_not_all_;
}

const Function* RuntimeNames::find(std::uint64_t address) {
    const auto look = [&]() -> const Function* {
        const auto after = functions_.upper_bound(address);
        if (after == functions_.begin() || std::prev(after)->second.end <= address) return nullptr;
        return &std::prev(after)->second;
    };
    if (const Function* known = look()) return known;
    if (path_.empty()) return nullptr;
    read_what_is_new();
    return look();
}

}  // namespace shadowprof::report
