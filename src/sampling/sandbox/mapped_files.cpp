#include "sampling/sandbox/mapped_files.h"

#include "proc/open_files.h"

namespace shadowprof::sampling {

MappedFiles::MappedFiles(pid_t pid, const proc::Maps& maps) : pid_(pid) {
    for (const auto& mapping : maps.mappings()) {
        if (!mapping.is_file()) continue;
        auto& file = files_[{mapping.device, mapping.inode}];
        if (!mapping.deleted && file.path.empty()) file.path = mapping.path;
        if (mapping.shared && mapping.writable) file.how = emu::Mapped::writable;
    }
}

emu::FileId MappedFiles::id_of(const emu::FileId& numbers, const File& file) const {
    const auto status = file.path.empty() ? std::nullopt : proc::status_of_path(pid_, file.path);
    return status ? emu::FileId{status->st_dev, status->st_ino} : numbers;
}

bool MappedFiles::contains(const emu::FileId& wanted, emu::Mapped how) {
    for (auto& [numbers, file] : files_) {
        if (file.how < how) continue;
        if (!file.id) file.id = id_of(numbers, file);
        if (wanted == *file.id || wanted == numbers) return true;
    }
    return false;
}

}  // namespace shadowprof::sampling
