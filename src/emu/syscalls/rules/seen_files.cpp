#include "emu/syscalls/rules/seen_files.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace shadowprof::emu::rules {

bool is_writable(const OpenFile& file) {
    if (file.is_read_end) return false;
    if (!file.status_flags) return true;
    return (*file.status_flags & O_PATH) == 0 && (*file.status_flags & O_ACCMODE) != O_RDONLY;
}

bool has_no_offset(const OpenFile& file) {
    const auto& status = file.status;
    return status && (S_ISFIFO(status->st_mode) || S_ISSOCK(status->st_mode));
}

FakedFile* faked(GuestFacts& facts, const OpenFile& file) {
    if (file.kind != OpenFile::Kind::file) return nullptr;
    if (auto* known = facts.faked.file(file.id)) {
        known->provide(file.contents);
        return known;
    }
    if (!file.status) return nullptr;
    const auto status = facts.faked.status_of(file.id, *file.status);
    return &facts.faked.files.try_emplace(file.id, file.contents, status).first->second;
}

std::optional<struct stat> status_as_seen(GuestFacts& facts, const OpenFile& file) {
    const auto& names = facts.faked.names;
    if (names.changed_directories.count(file.id) != 0) return {};
    if (const auto* changed = facts.faked.file(file.id)) return changed->status();
    if (!file.status) return {};
    return facts.faked.status_of(file.id, *file.status);
}

bool is_mapped(GuestFacts& facts, const FileId& file) {
    return facts.mapped_here.count(file) != 0 || facts.queries.is_mapped(file, Mapped::at_all);
}

PlainDevice plain_device(const std::optional<struct stat>& status) {
    if (!status || !S_ISCHR(status->st_mode) || major(status->st_rdev) != memory_devices) return {};
    switch (minor(status->st_rdev)) {
        case 3:
            return PlainDevice::null;
        case 5:
            return PlainDevice::zero;
        case 8:
        case 9:
            return PlainDevice::random;
        default:
            return PlainDevice::none;
    }
}

bool changes_owner(const Request& request) {
    return request.name.ends_with("chown") || request.name == "fchownat";
}

void change_attributes(const Request& request, FakedFile& file, std::size_t first) {
    if (request.name.ends_with("chmod") || request.name.starts_with("fchmodat")) {
        file.set_permissions(static_cast<mode_t>(request.argument(first)));
    } else if (changes_owner(request)) {
        file.set_owner(static_cast<uid_t>(request.argument(first)),
                       static_cast<gid_t>(request.argument(first + 1)));
    } else {
        file.forget_status();
    }
}

}  // namespace shadowprof::emu::rules
