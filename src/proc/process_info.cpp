#include "proc/process_info.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/signal_bit.h"
#include "proc/call_facts.h"
#include "proc/proc_text.h"

namespace shadowprof::proc {
namespace {

std::uint64_t number(std::string_view text, int base) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, base);
    return value;
}

std::string read_to_the_end(int fd) {
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;)
        text.append(buffer, static_cast<std::size_t>(got));
    return text;
}

std::string task_file(pid_t pid, pid_t tid, std::string_view name) {
    return fmt::format("/proc/{}/task/{}/{}", pid, tid, name);
}

}  // namespace

std::string read_proc_file(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    auto text = read_to_the_end(fd);
    close(fd);
    return text;
}

std::string read_proc_list(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    auto text = read_to_the_end(fd);
    char first;
    if (pread(fd, &first, 1, 0) != 1) text.clear();
    close(fd);
    return text;
}

std::string status_field(std::string_view status_text, std::string_view key) {
    while (!status_text.empty()) {
        const auto end = std::min(status_text.find('\n'), status_text.size());
        const auto line = status_text.substr(0, end);
        if (line.starts_with(key) && line.substr(key.size()).starts_with(':')) {
            const auto begin = line.find_first_not_of(" \t", key.size() + 1);
            return std::string{begin == line.npos ? std::string_view{} : line.substr(begin)};
        }
        status_text.remove_prefix(std::min(end + 1, status_text.size()));
    }
    return {};
}

bool SignalSets::ignores(int signal) const {
    if (ignored & signal_bit(signal)) return true;
    if (caught & signal_bit(signal)) return false;
    return signal == SIGCHLD || signal == SIGCONT || signal == SIGURG || signal == SIGWINCH;
}

namespace {

// The file "stat" of a process or thread.
class StatFields {
  public:
    explicit StatFields(std::string_view text) {
        // The name, in parentheses, may contain anything, parentheses and spaces included.
        const auto name_end = text.rfind(')');
        if (name_end == std::string::npos) return;
        auto rest = text.substr(name_end + 1);
        while (true) {
            const auto begin = rest.find_first_not_of(" \n");
            if (begin == std::string_view::npos) break;
            const auto end = std::min(rest.find_first_of(" \n", begin), rest.size());
            fields_.push_back(rest.substr(begin, end - begin));
            rest.remove_prefix(end);
        }
    }
    bool are_complete() const { return fields_.size() >= 39; }
    std::string_view text(std::size_t number_in_manual) const {
        return fields_[number_in_manual - 3];
    }
    std::uint64_t number(std::size_t number_in_manual) const {
        return proc::number(text(number_in_manual), 10);
    }

  private:
    std::vector<std::string_view> fields_;  // the first is field 3 of proc(5)
};

std::optional<ThreadStat> stat_in(std::string_view text) {
    const StatFields fields{text};
    if (!fields.are_complete()) return {};
    ThreadStat stat;
    stat.state = fields.text(3).front();
    stat.cpu_ticks = fields.number(14) + fields.number(15);
    stat.processor = static_cast<int>(fields.number(39));
    stat.scheduling = static_cast<int>(fields.number(41));
    return stat;
}

std::optional<UsageCounts> usage_counts_in(std::string_view text) {
    const StatFields fields{text};
    if (!fields.are_complete()) return {};
    UsageCounts counts;
    std::size_t field = 10;
    for (auto* count : {&counts.minor_faults, &counts.childrens_minor_faults, &counts.major_faults,
                        &counts.childrens_major_faults, &counts.user, &counts.system,
                        &counts.childrens_user, &counts.childrens_system})
        *count = fields.number(field++);
    return counts;
}

}  // namespace

std::optional<UsageCounts> usage_counts(pid_t pid) {
    return usage_counts_in(read_proc_file(fmt::format("/proc/{}/stat", pid)));
}
std::optional<UsageCounts> usage_counts(pid_t pid, pid_t tid) {
    return usage_counts_in(read_proc_file(task_file(pid, tid, "stat")));
}

std::optional<std::uint64_t> peak_memory(pid_t pid) {
    const auto peak = status_field(read_proc_file(fmt::format("/proc/{}/status", pid)), "VmHWM");
    if (peak.empty()) return {};
    return number(peak, 10);
}

std::optional<ThreadStat> thread_stat(pid_t pid, pid_t tid) {
    return stat_in(read_proc_file(task_file(pid, tid, "stat")));
}

std::optional<ThreadStat> ThreadStatWatch::of(pid_t pid, pid_t tid) {
    return stat_in(file_.of(pid, tid));
}

std::optional<std::uint64_t> thread_cpu_time(pid_t pid, pid_t tid) {
    const auto text = read_proc_file(task_file(pid, tid, "schedstat"));
    if (text.empty()) return {};
    return number(text, 10);
}

std::optional<SignalSets> signal_sets(pid_t pid, pid_t tid) {
    return signal_sets_in(read_proc_file(task_file(pid, tid, "status")));
}

std::optional<SignalSets> signal_sets_in(std::string_view status) {
    if (status.empty()) return {};
    const auto set = [&](const char* key) { return number(status_field(status, key), 16); };
    SignalSets sets;
    sets.pending = set("SigPnd");
    sets.process_pending = set("ShdPnd");
    sets.blocked = set("SigBlk");
    sets.ignored = set("SigIgn");
    sets.caught = set("SigCgt");
    return sets;
}

std::optional<std::uint64_t> times_slept(pid_t pid, pid_t tid) {
    const auto text = read_proc_file(task_file(pid, tid, "status"));
    if (text.empty()) return {};
    return number(status_field(text, "voluntary_ctxt_switches"), 10);
}

std::optional<std::uint64_t> process_cpu_time(pid_t pid) {
    // clock_getcpuclockid(3) would ask the kernel whether there is such a clock, which the next
    // call tells anyway.
    constexpr clockid_t scheduler_time_of_process = 2;
    const clockid_t clock = ~pid * 8 | scheduler_time_of_process;
    timespec time{};
    if (clock_gettime(clock, &time) != 0) return {};
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}

std::optional<std::uint64_t> minor_faults(pid_t pid) {
    const auto counts = usage_counts(pid);
    if (!counts) return {};
    return counts->minor_faults;
}

std::optional<std::uint64_t> anonymous_pages(pid_t pid) {
    // "SIZE RESIDENT SHARED …"
    std::istringstream text{read_proc_file(fmt::format("/proc/{}/statm", pid))};
    std::uint64_t size = 0, resident = 0, shared = 0;
    if (!(text >> size >> resident >> shared)) return {};
    return resident - std::min(shared, resident);
}

std::vector<pid_t> threads_of(pid_t pid) {
    std::vector<pid_t> tids;
    const std::unique_ptr<DIR, int (*)(DIR*)> tasks{
        opendir(fmt::format("/proc/{}/task", pid).c_str()), closedir};
    if (!tasks) return tids;
    while (const dirent* entry = readdir(tasks.get())) {
        const auto tid = static_cast<pid_t>(number(entry->d_name, 10));
        if (tid > 0) tids.push_back(tid);
    }
    return tids;
}

pid_t one_with_memory(pid_t pid) {
    const auto has_ended = [pid](pid_t tid) {
        const auto stat = thread_stat(pid, tid);
        return !stat || stat->state == 'Z' || stat->state == 'X';
    };
    if (!has_ended(pid)) return pid;
    for (const auto tid : threads_of(pid))
        if (!has_ended(tid)) return tid;
    return pid;
}

std::optional<Address> random_bytes_of(pid_t pid) {
    const auto text = read_proc_file("/proc/" + std::to_string(pid) + "/auxv");
    for (std::size_t at = 0; at + sizeof(Elf64_auxv_t) <= text.size(); at += sizeof(Elf64_auxv_t)) {
        Elf64_auxv_t entry;
        std::memcpy(&entry, text.data() + at, sizeof entry);
        if (entry.a_type == AT_RANDOM) return Address{entry.a_un.a_val};
    }
    return {};
}

bool share_memory(pid_t a, pid_t b) {
    return syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0) == 0;
}

bool is_32bit(pid_t pid) {
    const auto exe = fmt::format("/proc/{}/exe", pid);
    const int fd = open(exe.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    unsigned char ident[EI_NIDENT] = {};
    const bool got = read(fd, ident, sizeof ident) == sizeof ident;
    close(fd);
    return got && std::memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS32;
}

namespace {

// In which a shell looks for programs: mostly they are the same for all.
std::vector<std::string> folders_of_programs() {
    std::vector<std::string> folders;
    const char* const path = std::getenv("PATH");
    std::istringstream list{path ? path : "/usr/local/bin:/usr/bin:/bin"};
    for (std::string folder; std::getline(list, folder, ':');)
        if (folder.starts_with('/')) folders.push_back(folder + "/");
    return folders;
}

// The link to this file that has such a name; empty if there is none.
std::string link_to(const std::string& file, std::string_view name) {
    const auto slash = file.rfind('/');
    const auto base = std::string{name.substr(name.rfind('/') + 1)};
    const auto is_link = [&](const std::string& path) {
        std::error_code error;
        return path.starts_with('/') && std::filesystem::canonical(path, error) == file && !error;
    };
    for (const auto& path : {file.substr(0, slash + 1) + base, std::string{name}})
        if (is_link(path)) return path;
    // It may be in another folder than its file: dot, whose file is libgvc6-config-update.
    if (base.empty() || base.find(' ') != base.npos || base == file.substr(slash + 1)) return {};
    for (const auto& folder : folders_of_programs())
        if (is_link(folder + base)) return folder + base;
    return {};
}

}  // namespace

std::string program_of(pid_t pid) {
    std::string path(4096, '\0');
    const auto length =
        readlink(fmt::format("/proc/{}/exe", pid).c_str(), path.data(), path.size());
    if (length <= 0) return thread_name(pid, pid);
    path.resize(static_cast<std::size_t>(length));
    constexpr std::string_view gone = " (deleted)";
    if (path.ends_with(gone)) path.resize(path.size() - gone.size());
    const auto arguments = command_line(pid);
    if (arguments.empty()) return path;
    // A process may write there what it likes, as in "redis-server 127.0.0.1:6379".
    const std::string_view called = arguments.front();
    for (const auto name : {called, called.substr(0, called.find(' '))})
        if (auto link = link_to(path, name); !link.empty()) return link;
    return path;
}

std::optional<Birth> birth_of(pid_t pid) {
    const auto text = read_proc_file(fmt::format("/proc/{}/stat", pid));
    const StatFields fields{text};
    if (!fields.are_complete()) return {};
    Birth birth;
    birth.pid = pid;
    birth.parent = static_cast<pid_t>(fields.number(4));
    birth.started = fields.number(22);
    birth.end_signal = static_cast<int>(fields.number(38));
    return birth;
}

std::vector<std::string> command_line(pid_t pid) {
    std::vector<std::string> arguments;
    const auto text = read_proc_file(fmt::format("/proc/{}/cmdline", pid));
    for (std::size_t begin = 0; begin < text.size();) {
        const auto end = std::min(text.find('\0', begin), text.size());
        arguments.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return arguments;
}

std::optional<CallOfSleeper> sleeps_in_call(pid_t pid, pid_t tid) {
    // "NUMBER ARGUMENT×6 STACK PLACE", "running", or "-1 STACK PLACE" if it is in no call.
    const auto text = read_proc_file(task_file(pid, tid, "syscall"));
    std::vector<std::uint64_t> words;
    for (auto at = text.find(" 0x"); at != std::string::npos; at = text.find(" 0x", at + 1))
        words.push_back(number(std::string_view{text}.substr(at + 3), 16));
    CallOfSleeper call;
    if (words.size() == call.arguments.size() + 2) {
        call.number = static_cast<std::int64_t>(number(text, 10));
        std::copy_n(words.begin(), call.arguments.size(), call.arguments.begin());
    } else {
        const auto stat = thread_stat(pid, tid);
        if (words.size() != 2 || !stat || stat->state != 'D') return {};
        call.number = -1;
    }
    call.stack = {words[words.size() - 2]};
    call.at = {words.back()};
    return call;
}

std::optional<ScheduledTime> scheduled_time(pid_t pid, pid_t tid) {
    return ScheduledTimeWatch{}.of(pid, tid);
}

std::optional<ScheduledTime> ScheduledTimeWatch::of(pid_t pid, pid_t tid) {
    const auto text = file_.of(pid, tid);
    if (text.empty()) return {};
    ScheduledTime time;
    const auto* at = text.data();
    for (auto* field : {&time.ran, &time.waited, &time.times})
        at = std::from_chars(at, text.data() + text.size(), *field).ptr + 1;
    return time;
}

std::string thread_name(pid_t pid, pid_t tid) {
    auto name = read_proc_file(task_file(pid, tid, "comm"));
    if (name.ends_with('\n')) name.pop_back();
    return name;
}

pid_t own_number_of(pid_t tid) {
    const auto status = read_proc_file("/proc/" + std::to_string(tid) + "/status");
    const auto numbers = status_field(status, "NSpid");
    const auto last = numbers.find_last_of(" \t");
    const auto text = last == numbers.npos ? numbers : numbers.substr(last + 1);
    pid_t number = tid;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

bool sleeps_soundly(pid_t pid, pid_t tid) {
    const auto text = read_proc_file(task_file(pid, tid, "syscall"));
    return !text.empty() && text.front() >= '0' && text.front() <= '9' &&
           facts_of_call(static_cast<std::int64_t>(number(text, 10))).resumes;
}

bool waits_in_futex(pid_t pid, pid_t tid) {
    // "NUMBER ARGUMENT ARGUMENT …", in hexadecimal but for the first.
    const auto text = read_proc_file(task_file(pid, tid, "syscall"));
    std::istringstream words{text};
    std::uint64_t call = 0;
    std::string at, operation;
    if (!(words >> call >> at >> operation) || call != SYS_futex) return false;
    const auto command = std::stoull(operation, nullptr, 16) & FUTEX_CMD_MASK;
    return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
}

bool is_running(pid_t pid, pid_t tid) {
    // The kernel answers "running" for a thread that neither sleeps nor is stopped, and otherwise
    // describes what it sleeps in.
    return read_proc_file(task_file(pid, tid, "syscall")).starts_with("running");
}

std::optional<Address> goes_on_at(pid_t pid, pid_t tid) {
    const auto text = read_proc_file(task_file(pid, tid, "syscall"));
    const auto last = text.rfind(" 0x");
    if (last == std::string::npos) return {};
    return Address{number(std::string_view{text}.substr(last + 3), 16)};
}

}  // namespace shadowprof::proc
