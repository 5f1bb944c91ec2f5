#include "proc/open_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kcmp.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include "proc/proc_text.h"

namespace shadowprof::proc {
namespace {

std::uint64_t number_in(std::string_view text, int base) {
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, base);
    return value;
}

std::string path_of(pid_t pid, int number) {
    return fmt::format("/proc/{}/fd/{}", pid, number);
}

// File systems whose files the kernel makes up, by their names in mountinfo and in statfs(2).
struct MadeUp {
    std::string_view name;
    long type;
};
constexpr MadeUp made_up[] = {
    {"proc", 0x9fa0},           {"sysfs", 0x62656572},      {"tracefs", 0x74726163},
    {"debugfs", 0x64626720},    {"securityfs", 0x73636673}, {"cgroup", 0x27e0eb},
    {"cgroup2", 0x63677270},    {"pstore", 0x6165676c},     {"bpf", 0xcafe4a11},
    {"efivarfs", 0xde5e81e4},   {"configfs", 0x62656570},   {"devpts", 0x1cd1},
    {"mqueue", 0x19800202},     {"nsfs", 0x6e736673},       {"binfmt_misc", 0x42494e4d},
    {"selinuxfs", 0xf97cff8c},  {"smackfs", 0x43415d53},    {"autofs", 0x187},
    {"rpc_pipefs", 0x67596969}, {"nfsd", 0x6e667364},       {"binder", 0x6c6f6f70},
    {"resctrl", 0x7655821},     {"fusectl", 0x65735543},    {"functionfs", 0xa647361},
    {"xenfs", 0xabba1974},
};

bool is_made_up(long type) {
    return std::any_of(std::begin(made_up), std::end(made_up),
                       [&](const MadeUp& system) { return system.type == type; });
}

std::string details_path_of(pid_t pid, int number) {
    return fmt::format("/proc/{}/fdinfo/{}", pid, number);
}

std::shared_ptr<DIR> directory_of(pid_t pid) {
    auto* const directory = opendir(fmt::format("/proc/{}/fd", pid).c_str());
    return directory ? std::shared_ptr<DIR>{directory, closedir} : nullptr;
}

std::vector<int> numbers_in(DIR* directory) {
    std::vector<int> numbers;
    while (const auto* entry = readdir(directory)) {
        const std::string_view name{entry->d_name};
        int number = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
        if (error == std::errc{} && end == name.data() + name.size()) numbers.push_back(number);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

timespec time_of(const statx_timestamp& stamp) {
    return {stamp.tv_sec, stamp.tv_nsec};
}

// See status_of_descriptor.
std::optional<struct stat> status_at(int directory, const char* path) {
    struct statx found {};
    if (statx(directory, path, AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &found) != 0) return {};
    struct stat status {};
    status.st_dev = makedev(found.stx_dev_major, found.stx_dev_minor);
    status.st_ino = found.stx_ino;
    status.st_nlink = found.stx_nlink;
    status.st_mode = found.stx_mode;
    status.st_uid = found.stx_uid;
    status.st_gid = found.stx_gid;
    status.st_rdev = makedev(found.stx_rdev_major, found.stx_rdev_minor);
    status.st_size = static_cast<off_t>(found.stx_size);
    status.st_blksize = found.stx_blksize;
    status.st_blocks = static_cast<blkcnt_t>(found.stx_blocks);
    status.st_atim = time_of(found.stx_atime);
    status.st_mtim = time_of(found.stx_mtime);
    status.st_ctim = time_of(found.stx_ctime);
    return status;
}

std::optional<OpenDescriptor::Details> details_in(std::string_view info) {
    if (info.empty()) return {};
    OpenDescriptor::Details details;
    const auto flags = static_cast<int>(number_in(status_field(info, "flags"), 8));
    details.flags = flags & ~O_CLOEXEC;
    details.closes_on_exec = (flags & O_CLOEXEC) != 0;
    details.offset = number_in(status_field(info, "pos"), 10);
    details.is_leased =
        info.find("\nlock:") != std::string::npos && info.find(" LEASE ") != std::string::npos;
    if (const auto inode = status_field(info, "ino"); !inode.empty())
        details.inode = number_in(inode, 10);
    return details;
}

}  // namespace

bool is_same_file(const struct stat& one, const struct stat& other) {
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

std::optional<std::vector<int>> open_numbers(pid_t pid) {
    const auto directory = directory_of(pid);
    if (!directory) return {};
    return numbers_in(directory.get());
}

bool may_serve_page_faults(pid_t pid) {
    constexpr std::size_t most_looked_at = 1000;
    constexpr std::string_view wanted = "anon_inode:[userfaultfd]";
    const auto directory = directory_of(pid);
    if (!directory) return false;
    auto numbers = numbers_in(directory.get());
    numbers.resize(std::min(numbers.size(), most_looked_at));
    return std::ranges::any_of(numbers, [&](int number) {
        std::array<char, wanted.size() + 1> text{};
        const auto size = ::readlinkat(dirfd(directory.get()), std::to_string(number).c_str(),
                                       text.data(), text.size());
        return size == static_cast<ssize_t>(wanted.size()) &&
               std::string_view(text.data(), wanted.size()) == wanted;
    });
}

std::optional<std::vector<OpenDescriptor>> OpenFilesWatch::all() {
    if (directory_)
        rewinddir(directory_.get());
    else
        directory_ = directory_of(pid_);
    if (!directory_) return {};
    std::vector<OpenDescriptor> all;
    for (const auto number : numbers_in(directory_.get())) {
        OpenDescriptor open;
        open.number = number;
        const auto name = std::to_string(number);
        const auto status = status_at(dirfd(directory_.get()), name.c_str());
        if (!status) continue;
        open.status = *status;
        // The permissions of its link say what a descriptor is for; asking holds nothing open.
        struct stat link {};
        open.is_read_end =
            S_ISFIFO(open.status.st_mode) &&
            fstatat(dirfd(directory_.get()), name.c_str(), &link, AT_SYMLINK_NOFOLLOW) == 0 &&
            (link.st_mode & S_IWUSR) == 0;
        all.push_back(open);
    }
    return all;
}

std::optional<OpenDescriptor::Details> details_of(pid_t pid, int number) {
    return details_in(read_proc_file(details_path_of(pid, number)));
}

std::optional<OpenDescriptor::Details> OpenFilesWatch::details_of(int number) {
    constexpr std::size_t most_open = 32;  // of our descriptors
    if (details_.size() >= most_open) details_.clear();
    auto& file = details_[number];
    auto details = details_in(file.read());
    if (details) return details;
    file = ProcFile{details_path_of(pid_, number)};
    details = details_in(file.read());
    if (!details) details_.erase(number);
    return details;
}

std::optional<struct stat> status_of_descriptor(pid_t pid, int number) {
    return status_at(AT_FDCWD, path_of(pid, number).c_str());
}

int second_descriptor(pid_t pid, int number) {
    const auto pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (pidfd < 0) return -1;
    const auto second = static_cast<int>(syscall(SYS_pidfd_getfd, pidfd, number, 0));
    close(pidfd);
    return second;
}

std::optional<OpenDescriptor> open_descriptor(pid_t pid, int number) {
    OpenDescriptor open;
    open.number = number;
    const auto status = status_of_descriptor(pid, number);
    if (!status) return {};
    open.status = *status;
    open.details = details_of(pid, number);
    if (!open.details) return {};
    return open;
}

int open_again(pid_t pid, const OpenDescriptor& file) {
    const auto path = path_of(pid, file.number);
    constexpr int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    // Reading is not to be seen in the file's access time; that is for its owner to ask.
    int again = open(path.c_str(), flags | O_NOATIME);
    if (again < 0) again = open(path.c_str(), flags);
    struct stat status {};
    if (again >= 0 && fstat(again, &status) == 0 && is_same_file(status, file.status)) return again;
    if (again >= 0) close(again);
    return -1;
}

bool is_made_up_file(pid_t pid, int number) {
    struct statfs system {};
    return statfs(path_of(pid, number).c_str(), &system) != 0 || is_made_up(system.f_type);
}

std::optional<struct stat> status_of_path(pid_t pid, const std::string& path) {
    struct stat status {};
    if (stat(fmt::format("/proc/{}/root{}", pid, path).c_str(), &status) != 0) return {};
    return status;
}

bool share_description(pid_t pid, int number, int other) {
    return syscall(SYS_kcmp, pid, pid, KCMP_FILE, number, other) == 0;
}

std::optional<bool> is_locked_by_others(pid_t pid, const struct stat& file,
                                        const struct flock& wanted) {
    if (wanted.l_whence != SEEK_SET || wanted.l_len < 0) return {};
    constexpr auto end_of_file = std::numeric_limits<off_t>::max();
    const auto last = wanted.l_len == 0 ? end_of_file : wanted.l_start + (wanted.l_len - 1);
    std::istringstream lines{read_proc_file("/proc/locks")};
    bool has_one_itself = false;
    for (std::string line; std::getline(lines, line);) {
        // 1: POSIX  ADVISORY  WRITE 1234 08:01:5678 0 EOF
        std::array<char, 8> kind{}, access{};
        std::array<char, 24> end{};
        pid_t owner = 0;
        unsigned major_number = 0, minor_number = 0;
        unsigned long long inode = 0;
        long long first = 0;
        const auto count = std::sscanf(line.c_str(), "%*d: %7s %*s %7s %d %x:%x:%llu %lld %23s",
                                       kind.data(), access.data(), &owner, &major_number,
                                       &minor_number, &inode, &first, end.data());
        constexpr int all = 8;
        const bool is_of_whole_description = std::string_view{kind.data()} == "OFDLCK";
        if (count != all || (std::string_view{kind.data()} != "POSIX" && !is_of_whole_description))
            continue;
        if (makedev(major_number, minor_number) != file.st_dev || inode != file.st_ino) continue;
        if (owner == pid) {
            has_one_itself = true;
            continue;
        }
        const bool may_share =
            wanted.l_type == F_RDLCK && std::string_view{access.data()} == "READ";
        const auto until =
            std::string_view{end.data()} == "EOF" ? end_of_file : std::atoll(end.data());
        if (!may_share && first <= last && wanted.l_start <= until) return true;
    }
    // If not, /proc/locks may number the file differently, as it does for some file systems.
    return has_one_itself ? std::optional{false} : std::nullopt;
}

namespace {

std::set<std::uint64_t> devices_of(pid_t pid, bool (*is_wanted)(std::string_view system)) {
    std::set<std::uint64_t> devices;
    const auto text = read_proc_file(fmt::format("/proc/{}/mountinfo", pid));
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size());
        const auto line = text.substr(at, end - at);
        at = end + 1;
        // 36 35 98:0 /root /mount options - type source …
        unsigned major_number = 0, minor_number = 0;
        if (std::sscanf(line.c_str(), "%*u %*u %u:%u", &major_number, &minor_number) != 2) continue;
        const auto mark = line.find(" - ");
        if (mark == std::string::npos) continue;
        const auto type = std::string_view{line}.substr(mark + 3);
        if (is_wanted(type.substr(0, type.find(' '))))
            devices.insert(makedev(major_number, minor_number));
    }
    return devices;
}

}  // namespace

std::set<std::uint64_t> made_up_devices(pid_t pid) {
    return devices_of(pid, [](std::string_view name) {
        return std::any_of(std::begin(made_up), std::end(made_up),
                           [&](const MadeUp& system) { return system.name == name; });
    });
}

std::set<std::uint64_t> devices_told_of_closing(pid_t pid) {
    return devices_of(pid, [](std::string_view name) {
        constexpr std::string_view others[] = {"nfs", "nfs4",     "cifs",     "smb3",
                                               "afs", "virtiofs", "ecryptfs", "orangefs"};
        return name.starts_with("fuse") || std::ranges::count(others, name) > 0;
    });
}

std::string anonymous_kind(pid_t pid, int number) {
    constexpr std::string_view begin = "anon_inode:";
    std::array<char, 64> text{};
    const auto length = readlink(path_of(pid, number).c_str(), text.data(), text.size());
    const std::string_view name{text.data(),
                                static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
    return name.starts_with(begin) ? std::string{name.substr(begin.size())} : std::string{};
}

std::optional<mode_t> creation_mask(pid_t pid) {
    const auto mask = status_field(read_proc_file(fmt::format("/proc/{}/status", pid)), "Umask");
    if (mask.empty()) return {};
    return static_cast<mode_t>(number_in(mask, 8));
}

}  // namespace shadowprof::proc
