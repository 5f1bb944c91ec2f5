#include "sampling/sandbox/replica_queries.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "proc/maps.h"
#include "proc/process_info.h"

namespace shadowprof::sampling {

namespace {

constexpr std::uint64_t scratch_size = 3 * page_size;  // a path, and a result behind it
constexpr std::uint64_t result_offset = 2 * page_size;

std::uint64_t as_argument(int number) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
}

constexpr std::uint64_t second = 1'000'000'000;

std::uint64_t nanoseconds_of_ticks(std::uint64_t ticks) {
    return ticks * (second / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK)));
}
std::uint64_t nanoseconds_in(const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * second +
           static_cast<std::uint64_t>(time.tv_usec) * 1000;
}
timeval as_timeval(std::uint64_t nanoseconds) {
    return {static_cast<time_t>(nanoseconds / second),
            static_cast<suseconds_t>(nanoseconds % second / 1000)};
}

}  // namespace

emu::Descriptor ReplicaQueries::descriptor(int fd) {
    const auto known = at_birth_.open.find(fd);
    if (known != at_birth_.open.end()) return known->second;
    auto file = std::make_shared<emu::OpenFile>();
    if (at_birth_.is_complete) file->kind = emu::OpenFile::Kind::closed;
    return {std::move(file), {}};
}

emu::Descriptor ReplicaQueries::opened_descriptor(int fd) {
    const auto open = proc::open_descriptor(replica_.pid(), fd);
    if (!open) return {std::make_shared<emu::OpenFile>(), {}};
    auto opened = describe(target_, replica_.pid(), *open, true);
    const bool is_written =
        S_ISREG(open->status.st_mode) &&
        (is_since_birth(open->status.st_mtim) || is_since_birth(open->status.st_ctim));
    if (is_written) {
        opened.file->contents = nullptr;
        opened.file->status = status_at_birth(opened.file->id);
    }
    return opened;
}

// Files in /proc change all the time, and their times say nothing about it.
bool ReplicaQueries::has_other_names(int fd) {
    const auto status = proc::status_of_descriptor(replica_.pid(), fd);
    return !status || (is_since_birth(status->st_mtim) && !is_made_up(status->st_dev));
}

std::optional<AddressRange> ReplicaQueries::scratch() const {
    if (scratch_ == Address{}) return {};
    return AddressRange{scratch_, scratch_ + scratch_size};
}

bool ReplicaQueries::map_scratch() {
    if (scratch_ != Address{}) return true;
    const auto at = replica_.call(SYS_mmap, {0, scratch_size, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, ~std::uint64_t{0}, 0});
    if (!at || *at < 0) return false;
    scratch_ = {static_cast<std::uint64_t>(*at)};
    return true;
}

int ReplicaQueries::put_path(const std::string& path) {
    if (path.size() >= page_size) return ENAMETOOLONG;
    if (!map_scratch()) return ENOMEM;
    const std::span text{path.c_str(), path.size() + 1};
    return replica_.memory().write(scratch_, std::as_bytes(text)) ? 0 : EFAULT;
}

// With O_PATH nobody who watches the directory notices.
std::optional<std::int64_t> ReplicaQueries::open_directory_of(pid_t pid, int number,
                                                              const emu::FileId& id) {
    if (put_path(fmt::format("/proc/{}/fd/{}", pid, number)) != 0) return {};
    constexpr int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    const auto fd =
        replica_.call(SYS_openat, {as_argument(AT_FDCWD), scratch_.value, as_argument(flags)});
    if (!fd || *fd < 0) return {};
    const auto open = proc::open_descriptor(replica_.pid(), static_cast<int>(*fd));
    if (open && emu::FileId{open->status.st_dev, open->status.st_ino} == id) return fd;
    replica_.call(SYS_close, {static_cast<std::uint64_t>(*fd)});
    return {};
}

std::optional<emu::PathStatus> ReplicaQueries::status_of(int directory, const std::string& path,
                                                         bool follow_links) {
    if (const int error = put_path(path)) {
        if (error == ENAMETOOLONG) return emu::PathStatus{error, {}};
        return {};
    }
    const auto flags = AT_NO_AUTOMOUNT | (follow_links ? 0 : AT_SYMLINK_NOFOLLOW);
    const auto result =
        replica_.call(SYS_newfstatat, {as_argument(directory), scratch_.value,
                                       scratch_.value + result_offset, as_argument(flags)});
    if (!result || *result == -ENOSYS || *result == -EPERM) return {};
    if (*result < 0) return emu::PathStatus{static_cast<int>(-*result), {}};
    const auto status = replica_.memory().read_as<struct stat>(scratch_ + result_offset);
    if (!status) return {};
    emu::PathStatus found{0, *status, has_come_since_birth(directory, flags, *status)};
    const bool is_written =
        S_ISREG(status->st_mode) && is_since_birth(status->st_mtim) && !is_made_up(status->st_dev);
    if (!is_written) return found;
    const auto before = status_at_birth({status->st_dev, status->st_ino});
    if (before) found.status = *before;
    found.is_earlier = before.has_value();
    found.is_written = !before;
    return found;
}

std::optional<struct stat> ReplicaQueries::status_at_birth(const emu::FileId& file) const {
    for (const auto& [number, descriptor] : at_birth_.open)
        if (descriptor.file->id == file && descriptor.file->status) return descriptor.file->status;
    return {};
}

// Precise to a tick of the kernel's clock.
bool ReplicaQueries::is_since_birth(const timespec& time) const {
    const auto& birth = at_birth_.moment;
    return std::pair{time.tv_sec, time.tv_nsec} >= std::pair{birth.tv_sec, birth.tv_nsec};
}

// Writing to a file changes both of its times; giving it a name changes the status time only.
bool ReplicaQueries::has_come_since_birth(int directory, int flags, const struct stat& status) {
    if (!is_since_birth(status.st_ctim) || is_made_up(status.st_dev)) return false;
    const bool is_directory = S_ISDIR(status.st_mode);
    if (!is_directory && (status.st_mtim.tv_sec != status.st_ctim.tv_sec ||
                          status.st_mtim.tv_nsec != status.st_ctim.tv_nsec))
        return true;
    const auto result =
        replica_.call(SYS_statx, {as_argument(directory), scratch_.value, as_argument(flags),
                                  STATX_BTIME, scratch_.value + result_offset});
    const auto more = replica_.memory().read_as<struct statx>(scratch_ + result_offset);
    if (result != 0 || !more || (more->stx_mask & STATX_BTIME) == 0) return !is_directory;
    return is_since_birth({more->stx_btime.tv_sec, more->stx_btime.tv_nsec});
}

std::optional<int> ReplicaQueries::access_to(int directory, const std::string& path, int mode) {
    if (put_path(path) != 0) return {};
    const auto result = replica_.call(
        SYS_faccessat2, {as_argument(directory), scratch_.value, as_argument(mode), AT_EACCESS});
    if (!result || *result == -ENOSYS || *result == -EPERM) return {};
    return static_cast<int>(-*result);
}

bool ReplicaQueries::is_made_up(std::uint64_t device) {
    if (!made_up_devices_) made_up_devices_ = proc::made_up_devices(replica_.pid());
    return made_up_devices_->count(device) != 0;
}

std::shared_ptr<emu::FileContents> ReplicaQueries::contents_of(int directory,
                                                               const std::string& path) {
    if (put_path(path) != 0) return nullptr;
    constexpr int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    const auto fd = replica_.call(SYS_openat, {as_argument(directory), scratch_.value, flags});
    if (!fd || *fd < 0) return nullptr;
    auto contents = opened_descriptor(static_cast<int>(*fd)).file->contents;
    replica_.call(SYS_close, {static_cast<std::uint64_t>(*fd)});
    return contents;
}

std::optional<std::uint64_t> ReplicaQueries::cpu_time(std::optional<std::uint64_t>& base,
                                                      std::optional<std::uint64_t> targets,
                                                      std::optional<std::uint64_t> own) const {
    if (!own) return {};
    if (!base) {
        if (!targets) return {};
        base = *targets - std::min(*targets, *own);
    }
    return *base + *own;
}

std::optional<std::uint64_t> ReplicaQueries::process_cpu_time() {
    // Including that of threads that have ended.
    std::optional<std::uint64_t> time;
    if (!process_base_) time = proc::process_cpu_time(target_);
    return cpu_time(process_base_, time, proc::process_cpu_time(replica_.pid()));
}

std::optional<std::uint64_t> ReplicaQueries::thread_cpu_time() {
    std::optional<std::uint64_t> time;
    if (!asker_.base) time = proc::thread_cpu_time(target_, asker_.thread);
    return cpu_time(asker_.base, time, proc::thread_cpu_time(replica_.pid(), replica_.tid()));
}

// The kernel gives the target's time exactly in all, and to a tick how much of it was the system's.
std::optional<struct rusage> ReplicaQueries::usage(int who) {
    const bool of_thread = who == RUSAGE_THREAD;
    auto& counts = of_thread ? asker_.counts : process_counts_;
    if (!counts) {
        counts =
            of_thread ? proc::usage_counts(target_, asker_.thread) : proc::usage_counts(target_);
    }
    if (!counts) return {};
    struct rusage usage {};
    if (who == RUSAGE_CHILDREN) {
        usage.ru_utime = as_timeval(nanoseconds_of_ticks(counts->childrens_user));
        usage.ru_stime = as_timeval(nanoseconds_of_ticks(counts->childrens_system));
        usage.ru_minflt = static_cast<long>(counts->childrens_minor_faults);
        usage.ru_majflt = static_cast<long>(counts->childrens_major_faults);
        return usage;
    }
    if (!(of_thread ? thread_cpu_time() : process_cpu_time()) || !map_scratch()) return {};
    if (replica_.call(SYS_getrusage, {as_argument(who), scratch_.value}) != 0) return {};
    const auto own = replica_.memory().read_as<struct rusage>(scratch_);
    if (!own) return {};
    usage = *own;
    const auto base = of_thread ? *asker_.base : *process_base_;
    const auto system = std::min(base, nanoseconds_of_ticks(counts->system));
    usage.ru_utime = as_timeval(nanoseconds_in(own->ru_utime) + base - system);
    usage.ru_stime = as_timeval(nanoseconds_in(own->ru_stime) + system);
    usage.ru_minflt += static_cast<long>(counts->minor_faults);
    usage.ru_majflt += static_cast<long>(counts->major_faults);
    const auto peak = static_cast<long>(proc::peak_memory(target_).value_or(0));
    usage.ru_maxrss = std::max(usage.ru_maxrss, peak);
    return usage;
}

}  // namespace shadowprof::sampling
