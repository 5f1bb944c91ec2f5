#include "shadow/world_at_birth.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace shadowprof::shadow {

namespace {

using Kind = emu::OpenFile::Kind;

// Looking takes time, in which nobody waits for the target's signals; of more files than these it
// is only known what they are.
constexpr std::size_t most_details = 64;

class HeldFile : public emu::FileContents {
  public:
    HeldFile(int fd, pid_t target) : fd_(fd), target_(target) {}
    ~HeldFile() override { close(fd_); }
    HeldFile(const HeldFile&) = delete;
    HeldFile& operator=(const HeldFile&) = delete;

    std::int64_t read(std::uint64_t offset, std::span<std::byte> into) override {
        const auto got = pread(fd_, into.data(), into.size(), static_cast<off_t>(offset));
        return got >= 0 ? got : -errno;
    }
    std::optional<bool> is_locked_by_others(const struct flock& wanted) override {
        auto found = wanted;
        if (fcntl(fd_, F_GETLK, &found) != 0) return {};
        return found.l_type != F_UNLCK && found.l_pid != target_;
    }

  private:
    int fd_;
    pid_t target_;
};

bool is_file(const ptrace::OpenDescriptor& open) {
    return S_ISREG(open.status.st_mode);
}

bool is_same_file(const ptrace::OpenDescriptor& one, const ptrace::OpenDescriptor& other) {
    return one.status.st_dev == other.status.st_dev && one.status.st_ino == other.status.st_ino;
}

}  // namespace

emu::Descriptor describe(pid_t target, pid_t pid, const ptrace::OpenDescriptor& open) {
    auto file = std::make_shared<emu::OpenFile>();
    file->kind = is_file(open)                  ? Kind::file
                 : S_ISDIR(open.status.st_mode) ? Kind::directory
                                                : Kind::withdrawn;
    file->id = {open.status.st_dev, open.status.st_ino};
    file->status = open.status;
    file->is_held = file->kind == Kind::directory;
    if (!open.details) return {std::move(file), false};
    file->status_flags = open.details->flags;
    if (is_file(open)) {
        file->offset = open.details->offset;
        const bool may_be_read = (open.details->flags & O_PATH) == 0 && !open.details->is_made_up;
        // Opening a file breaks a lease, and its holder is told.
        if (may_be_read && !open.details->is_leased) {
            const int ours = ptrace::open_again(pid, open.number);
            if (ours >= 0) file->contents = std::make_shared<HeldFile>(ours, target);
        }
    }
    return {std::move(file), open.details->closes_on_exec};
}

WorldAtBirth BirthWatch::look(const ptrace::Nursery& nursery, const ptrace::Birth& birth) {
    WorldAtBirth world;
    if (const auto signals = ptrace::signal_sets(target_, birth.thread)) world.signals = *signals;
    auto all = ptrace::open_descriptors(target_);
    if (!all) return world;
    world.is_complete = !nursery.has_returned(birth);
    std::stable_partition(all->begin(), all->end(), is_file);
    for (std::size_t n = 0; n < all->size(); ++n) {
        auto& open = (*all)[n];
        const auto before = seen_.find(open.number);
        const bool is_known = before != seen_.end() && is_same_file(before->second, open);
        if (n < most_details && !nursery.has_returned(birth)) {
            ptrace::add_details(target_, open);
        } else if (is_known) {
            open.details = before->second.details;
        }
        auto& descriptor = world.open[open.number] = describe_with(world, *all, n);
        const bool may_be_late = is_file(open) ? nursery.has_returned(birth) : !world.is_complete;
        if (!may_be_late) continue;
        if (is_known) {
            descriptor.file->offset.reset();
        } else {
            descriptor.file = std::make_shared<emu::OpenFile>();
            descriptor.file->kind = Kind::withdrawn;
        }
    }
    seen_.clear();
    for (const auto& open : *all) seen_[open.number] = open;
    return world;
}

// Descriptors of one description have one offset: they move together.
emu::Descriptor BirthWatch::describe_with(const WorldAtBirth& world,
                                          const std::vector<ptrace::OpenDescriptor>& all,
                                          std::size_t which) const {
    const auto& open = all[which];
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(which);
    const auto twin = std::find_if(all.begin(), end, [&](const auto& other) {
        return is_file(open) && is_same_file(open, other) &&
               ptrace::share_description(target_, open.number, other.number);
    });
    if (twin == end) return describe(target_, target_, open);
    return {world.open.at(twin->number).file, open.details && open.details->closes_on_exec};
}

}  // namespace shadowprof::shadow
