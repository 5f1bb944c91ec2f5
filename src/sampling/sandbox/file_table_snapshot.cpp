#include "sampling/sandbox/file_table_snapshot.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace shadowprof::sampling {

namespace {

using Kind = emu::OpenFile::Kind;

// Nobody waits for the target's signals while we look. Of more files than this only the kind is
// known.
constexpr std::size_t most_details = 64;

// The target stands still while its offsets are read, so for more files than this they stay
// unknown.
constexpr std::size_t most_noted = 8;

bool is_same_time(const timespec& one, const timespec& other) {
    return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

bool is_before(const timespec& one, const timespec& other) {
    return std::pair{one.tv_sec, one.tv_nsec} < std::pair{other.tv_sec, other.tv_nsec};
}

class HeldFile : public emu::FileContents {
  public:
    HeldFile(int fd, pid_t target, const struct stat& status)
        : fd_(fd), target_(target), status_(status) {}
    ~HeldFile() override { close(fd_); }
    HeldFile(const HeldFile&) = delete;
    HeldFile& operator=(const HeldFile&) = delete;

    std::optional<std::int64_t> read(std::uint64_t offset, std::span<std::byte> into) override {
        const auto got = pread(fd_, into.data(), into.size(), static_cast<off_t>(offset));
        if (got < 0) return -errno;
        if (has_changed()) return {};
        return got;
    }
    std::optional<bool> is_locked_by_others(const struct flock& wanted) override {
        auto found = wanted;
        if (fcntl(fd_, F_GETLK, &found) != 0) return {};
        if (found.l_type == F_UNLCK) return false;
        if (found.l_pid != target_) return true;
        // Only the first one is reported.
        return proc::is_locked_by_others(target_, status_, wanted);
    }

    // Precise to a tick of the kernel's clock. Setting the time of writing back (utimensat) changes
    // the status time, and so does giving the file other rights or another name.
    bool has_changed() const override {
        struct stat now {};
        return fstat(fd_, &now) != 0 || now.st_size != status_.st_size ||
               !is_same_time(now.st_mtim, status_.st_mtim) ||
               !is_same_time(now.st_ctim, status_.st_ctim);
    }

  private:
    int fd_;
    pid_t target_;
    struct stat status_;
};

bool is_file(const proc::OpenDescriptor& open) {
    return S_ISREG(open.status.st_mode);
}

}  // namespace

emu::Descriptor describe(pid_t target, pid_t pid, const proc::OpenDescriptor& open,
                         bool may_be_opened) {
    auto file = std::make_shared<emu::OpenFile>();
    file->kind = is_file(open)                  ? Kind::file
                 : S_ISDIR(open.status.st_mode) ? Kind::directory
                                                : Kind::withdrawn;
    file->id = {open.status.st_dev, open.status.st_ino};
    file->status = open.status;
    file->is_read_end = open.is_read_end;
    file->is_held = file->kind == Kind::directory;
    if (!open.details) return {std::move(file), {}};
    file->status_flags = open.details->flags;
    if (is_file(open)) {
        file->offset = open.details->offset;
        const bool may_be_read = may_be_opened && (open.details->flags & O_PATH) == 0 &&
                                 !proc::is_made_up_file(pid, open.number);
        // Opening a file breaks a lease, and its holder would notice.
        if (may_be_read && !open.details->is_leased) {
            const int ours = proc::open_again(pid, open);
            if (ours >= 0) file->contents = std::make_shared<HeldFile>(ours, target, open.status);
        }
    }
    return {std::move(file), open.details->closes_on_exec};
}

void FileTableWatch::note() {
    if (!seen_) look_around({});
    clock_gettime(CLOCK_REALTIME_COARSE, &moment_);
    noted_.clear();
    for (const auto& [number, open] : *seen_) {
        if (noted_.size() == most_noted) break;
        if (!is_file(open)) continue;
        if (const auto details = files_.details_of(number)) noted_.emplace(number, *details);
    }
}

void FileTableWatch::look_around(const Open& before) {
    seen_.emplace();
    const auto all = files_.all();
    if (!all) return;
    // Either it has nothing open, or its descriptors can no longer be read, and samples end for
    // that.
    if (all->empty())
        if (auto now = inject::obstacle_now(target_); now && !now->may_pass) obstacle_ = now;
    for (const auto& open : *all) {
        (*seen_)[open.number] = open;
        const auto earlier = before.find(open.number);
        if (earlier == before.end() || !proc::is_same_file(earlier->second.status, open.status))
            look_for_obstacle(open);
    }
}

// A fork is an event of userfaultfd(2): the forking thread may have to wait until somebody, perhaps
// it itself, has read it. Opening a file that fanotify(7) guards means waiting for an answer from
// the program, which may be waiting for us. Counters may be inherited (perf_event_open(2)). And
// whatever forks closes the program's descriptors in a table of its own.
void FileTableWatch::look_for_obstacle(const proc::OpenDescriptor& open) {
    const bool has_no_type = (open.status.st_mode & S_IFMT) == 0;
    const auto kind = has_no_type ? proc::anonymous_kind(target_, open.number) : std::string{};
    if (kind == "[userfaultfd]")
        obstacle_ = {"it serves page faults (userfaultfd), which a fork would disturb"};
    if (kind == "[fanotify]")
        obstacle_ = {"it watches who opens files (fanotify), which shadowprof would have to open"};
    if (kind == "[perf_event]")
        obstacle_ = {"it counts events (perf_event_open), and might count those of replicas"};
    if (!is_file(open) || !is_told_of_closing(open.status.st_dev)) return;
    const auto details = files_.details_of(open.number);
    if (details && (details->flags & O_ACCMODE) != O_RDONLY)
        obstacle_ = {
            "it writes to a file whose file system, FUSE or NFS say, sends that somewhere "
            "whenever anyone closes it"};
}

bool FileTableWatch::is_told_of_closing(dev_t device) {
    const auto known = told_of_closing_.find(device);
    if (known != told_of_closing_.end()) return known->second;
    return told_of_closing_[device] = proc::devices_told_of_closing(target_).contains(device);
}

std::optional<proc::OpenDescriptor::Details> FileTableWatch::details(
    const proc::OpenDescriptor& open) {
    if (is_file(open)) {
        const auto noted = noted_.find(open.number);
        const bool is_it = noted != noted_.end() &&
                           noted->second.inode.value_or(open.status.st_ino) == open.status.st_ino;
        return is_it ? std::optional{noted->second} : std::nullopt;
    }
    const bool may_be_held = S_ISDIR(open.status.st_mode) || S_ISCHR(open.status.st_mode);
    return may_be_held ? files_.details_of(open.number) : std::nullopt;
}

FileTableSnapshot FileTableWatch::look(const inject::ForkSite& fork_site,
                                       const inject::PendingReplica& birth) {
    FileTableSnapshot world;
    world.signals = birth.signals;
    world.moment = moment_;
    const auto before = std::exchange(seen_, std::nullopt).value_or(Open{});
    look_around(before);
    world.is_complete = !seen_->empty() && !fork_site.has_returned(birth);
    // The intermediary may be waiting for our processor, and the thread for the intermediary.
    fork_site.await_return(birth);
    // The obstacle came up just now: then nothing is opened.
    if (obstacle_) {
        world.is_complete = false;
        return world;
    }
    for (auto& [number, open] : *seen_) {
        // The details of files are known already.
        if (is_file(open) || world.open.size() < most_details) open.details = details(open);
        auto& descriptor = world.open[number] = describe_with(world, open);
        if (world.is_complete) continue;
        if (is_file(open) && open.details) {
            // The thread may have written to it before we looked.
            if (!is_before(open.status.st_mtim, moment_)) {
                descriptor.file->status.reset();
                descriptor.file->contents = nullptr;
            }
            continue;
        }
        const auto earlier = before.find(number);
        if (earlier != before.end() && proc::is_same_file(earlier->second.status, open.status))
            continue;
        descriptor.file = std::make_shared<emu::OpenFile>();
        descriptor.file->kind = Kind::withdrawn;
    }
    return world;
}

// Descriptors of one description have one offset: they move together.
emu::Descriptor FileTableWatch::describe_with(const FileTableSnapshot& world,
                                              const proc::OpenDescriptor& open) {
    const auto twin = std::find_if(world.open.begin(), world.open.end(), [&](const auto& other) {
        return is_file(open) && proc::is_same_file(seen_->at(other.first).status, open.status) &&
               proc::share_description(target_, open.number, other.first);
    });
    // Opening a file asks the process that serves it. That may be the program, or be gone.
    if (twin == world.open.end())
        return describe(target_, target_, open,
                        !is_file(open) || !is_told_of_closing(open.status.st_dev));
    const auto& details = open.details;
    return {twin->second.file, details ? std::optional{details->closes_on_exec} : std::nullopt};
}

}  // namespace shadowprof::sampling
