#include "emu/syscalls/faked_files.h"

#include <time.h>

#include <algorithm>

namespace shadowprof::emu {

namespace {

// A sample that writes more is not worth the memory, and what it wrote is no longer kept.
constexpr std::size_t most_pages = 8192;

}  // namespace

FakedFile::FakedFile(std::shared_ptr<FileContents> real, const struct stat& status)
    : real_(std::move(real)),
      status_(status),
      size_(static_cast<std::uint64_t>(status.st_size)),
      real_size_(size_) {}

bool FakedFile::read_real(std::uint64_t offset, std::span<std::byte> into) {
    const auto here = offset < real_size_
                          ? std::min<std::uint64_t>(into.size(), real_size_ - offset)
                          : std::uint64_t{0};
    std::uint64_t done = 0;
    while (done < here) {
        if (!real_) return false;
        const auto got = real_->read(offset + done, into.subspan(done, here - done));
        if (!got || *got < 0) return false;
        if (*got == 0) break;
        done += static_cast<std::uint64_t>(*got);
    }
    std::fill(into.begin() + static_cast<std::ptrdiff_t>(done), into.end(), std::byte{0});
    return true;
}

std::optional<std::int64_t> FakedFile::read(std::uint64_t offset, std::span<std::byte> into) {
    if (!contents_are_known_ || !size_is_known_) return {};
    if (offset >= size_) return 0;
    into = into.first(std::min<std::uint64_t>(into.size(), size_ - offset));
    for (std::uint64_t done = 0; done < into.size();) {
        const auto at = offset + done;
        const auto within = at % page_size;
        const auto part = into.subspan(done, std::min(page_size - within, into.size() - done));
        const auto page = pages_.find(at / page_size);
        if (page == pages_.end()) {
            if (!read_real(at, part)) return {};
        } else {
            const auto* from = page->second->data() + within;
            std::copy(from, from + part.size(), part.begin());
        }
        done += part.size();
    }
    return static_cast<std::int64_t>(into.size());
}

FakedFile::Page* FakedFile::page_to_write(std::uint64_t number, bool all_of_it) {
    auto& page = pages_[number];
    if (!page) {
        page = std::make_unique<Page>();
        if (pages_.size() > most_pages || (!all_of_it && !read_real(number * page_size, *page))) {
            contents_are_known_ = false;
            pages_.clear();
            return nullptr;
        }
    }
    return page.get();
}

void FakedFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
    const auto end = offset + bytes.size();
    for (std::uint64_t done = 0; contents_are_known_ && done < bytes.size();) {
        const auto at = offset + done;
        const auto within = at % page_size;
        const auto part = bytes.subspan(done, std::min(page_size - within, bytes.size() - done));
        if (auto* page = page_to_write(at / page_size, part.size() == page_size)) {
            std::copy(part.begin(), part.end(),
                      page->begin() + static_cast<std::ptrdiff_t>(within));
        }
        done += part.size();
    }
    size_ = std::max(size_, end);
    note_change();
}

void FakedFile::resize(std::uint64_t size) {
    real_size_ = std::min(real_size_, size);
    size_is_known_ = true;
    if (size < size_) {
        pages_.erase(pages_.lower_bound((size + page_size - 1) / page_size), pages_.end());
        const auto last = pages_.find(size / page_size);
        if (last != pages_.end()) {
            std::fill(last->second->begin() + static_cast<std::ptrdiff_t>(size % page_size),
                      last->second->end(), std::byte{0});
        }
    }
    size_ = size;
    note_change();
}

void FakedFile::note_change() {
    note_change_of_status();
    status_.st_mtim = status_.st_ctim;
}

void FakedFile::note_change_of_status() {
    clock_gettime(CLOCK_REALTIME_COARSE, &status_.st_ctim);
}

void FakedFile::set_permissions(mode_t mode) {
    constexpr mode_t permissions = 07777;
    status_.st_mode = (status_.st_mode & ~permissions) | (mode & permissions);
    has_other_rights_ = true;
    note_change_of_status();
}

void FakedFile::set_owner(uid_t user, gid_t group) {
    if (user != static_cast<uid_t>(-1)) status_.st_uid = user;
    if (group != static_cast<gid_t>(-1)) status_.st_gid = group;
    has_other_rights_ = true;
    note_change_of_status();
}

void FakedFile::change_names(int more) {
    status_.st_nlink += static_cast<nlink_t>(more);
    note_change_of_status();
}

std::optional<struct stat> FakedFile::status() const {
    if (!status_is_known_ || !size_is_known_) return {};
    auto status = status_;
    constexpr blkcnt_t sector = 512;
    status.st_size = static_cast<off_t>(size_);
    status.st_blocks = (status.st_size + sector - 1) / sector;
    return status;
}

}  // namespace shadowprof::emu
