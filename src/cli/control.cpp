#include "cli/control.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "model/utf8.h"

namespace shadowprof::cli {

namespace {

constexpr std::size_t longest_line = 1000;

// Whoever can write there changes what is profiled, so it must be ours alone.
int open_pipe(const std::string& path) {
    const auto refuse = [&](const std::string& why) {
        throw UserError(fmt::format("--control: {}: {}", model::printable(path), why),
                        ExitStatus::bad_usage);
    };
    // For both directions: it neither waits for the other end nor ends when that goes away.
    const int fd = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        refuse(errno == ENOENT  ? "there is no such pipe (mkfifo makes one)"
               : errno == ELOOP ? "is a symbolic link"
                                : std::strerror(errno));
    struct stat is {};
    std::string why;
    if (::fstat(fd, &is) != 0 || !S_ISFIFO(is.st_mode))
        why = "is no named pipe (mkfifo makes one)";
    else if (is.st_uid != ::geteuid() && is.st_uid != 0)
        why = "belongs to another user";
    else if (is.st_mode & (S_IWGRP | S_IWOTH))
        why = "others may write to it (chmod 600 mends that)";
    if (!why.empty()) {
        ::close(fd);
        refuse(why);
    }
    return fd;
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blanks = " \t\r\n";
    const auto begin = text.find_first_not_of(blanks);
    if (begin == text.npos) return {};
    return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// NAME.burst=N or NAME.sparsity=N
std::string set_parameter(profile::RuleParameters& rules, std::string_view text) {
    const auto equals = text.find('=');
    const auto dot = text.substr(0, equals).rfind('.');
    if (equals == text.npos || dot == text.npos) return "set has NAME.burst=N or NAME.sparsity=N";
    const auto name = trimmed(text.substr(0, dot));
    const auto key = trimmed(text.substr(dot + 1, equals - dot - 1));
    const auto digits = trimmed(text.substr(equals + 1));
    const auto rule = rules.find(name);
    if (!rule) return fmt::format("there is no rule {}", model::printable(name));
    if (key != "burst" && key != "sparsity") return "a rule has burst and sparsity";
    const bool is_burst = key == "burst";
    const std::uint32_t least = is_burst ? 1 : 0,
                        most = is_burst ? profile::most_burst : profile::most_sparsity;
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value < least ||
        value > most)
        return fmt::format("{} is from {} to {}", key, least, most);
    auto parameters = rules.of(*rule);
    (is_burst ? parameters.burst : parameters.sparsity) = value;
    rules.set(*rule, parameters);
    return {};
}

std::string enable(profile::RuleParameters& rules, std::string_view name, bool enabled) {
    const auto one = rules.find(name);
    if (!name.empty() && !one) return fmt::format("there is no rule {}", model::printable(name));
    for (std::size_t n = 0; n < rules.rules().size(); ++n) {
        if (one && n != *one) continue;
        auto parameters = rules.of(n);
        parameters.enabled = enabled;
        rules.set(n, parameters);
    }
    return rules.rules().empty() ? "there are no rules" : "";
}

}  // namespace

Control::Control(const std::string& text) {
    if (text.empty()) return;
    constexpr std::string_view kind = "fifo:";
    if (!text.starts_with(kind))
        throw UserError("--control has fifo:CTL or fifo:CTL,ACK: named pipes",
                        ExitStatus::bad_usage);
    const auto comma = text.find(',');
    commands_ = open_pipe(text.substr(kind.size(), comma - kind.size()));
    try {
        if (comma != text.npos) answers_ = open_pipe(text.substr(comma + 1));
    } catch (...) {
        ::close(commands_);
        throw;
    }
}

Control::~Control() {
    end();
    for (const int fd : {commands_, answers_, wake_})
        if (fd >= 0) ::close(fd);
}

void Control::begin(profile::RuleParameters& rules, std::function<std::string()> snapshot) {
    if (!is_used()) return;
    rules_ = &rules;
    snapshot_ = std::move(snapshot);
    began_ = Clock::now();
    wake_ = ::eventfd(0, EFD_CLOEXEC);
    thread_ = std::thread([this] { listen(); });
}

void Control::end() {
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto ignored = ::write(wake_, &one, sizeof one);
    thread_.join();
}

std::vector<model::ControlCommand> Control::log() const {
    const std::lock_guard lock(mutex_);
    return log_;
}

void Control::listen() {
    std::string line;
    bool is_too_long = false;
    while (true) {
        std::array<pollfd, 2> ready{{{commands_, POLLIN, 0}, {wake_, POLLIN, 0}}};
        if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return;
        if (ready[1].revents) return;
        std::array<char, 512> buffer{};
        const auto size = ::read(commands_, buffer.data(), buffer.size());
        for (const char c : std::string_view(buffer.data(), size > 0 ? size : 0)) {
            if (c != '\n') {
                is_too_long = is_too_long || line.size() >= longest_line;
                if (!is_too_long) line += c;
                continue;
            }
            if (is_too_long)
                answer("error: a line of more than 1000 characters");
            else if (const auto command = trimmed(line); !command.empty())
                answer(carry_out(command));
            line.clear();
            is_too_long = false;
        }
    }
}

// Where nobody reads the answers the pipe fills up, and they are lost.
void Control::answer(std::string_view line) {
    if (answers_ < 0) return;
    const auto text = std::string(line) + '\n';
    [[maybe_unused]] const auto ignored = ::write(answers_, text.data(), text.size());
}

std::string Control::carry_out(std::string_view command) {
    const Seconds time = Clock::now() - began_;
    const auto why_not = command == "ping"       ? std::string()
                         : command == "snapshot" ? snapshot_()
                                                 : change(*rules_, command);
    if (!why_not.empty()) return "error: " + why_not;
    if (command != "ping") {
        const std::lock_guard lock(mutex_);
        log_.push_back({time.count(), model::printable(command)});
    }
    return "ack";
}

std::string Control::change(profile::RuleParameters& rules, std::string_view command) {
    const auto space = command.find_first_of(" \t");
    const auto word = command.substr(0, space);
    const auto rest = space == command.npos ? std::string_view() : trimmed(command.substr(space));
    if (word == "enable" || word == "disable") return enable(rules, rest, word == "enable");
    if (word == "set") return set_parameter(rules, rest);
    return "a command is enable [NAME], disable [NAME], set NAME.burst=N, set NAME.sparsity=N, "
           "snapshot or ping";
}

}  // namespace shadowprof::cli
