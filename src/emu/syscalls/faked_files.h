// Files as a sample would see them if everything that was reported to it had happened.
//
// A sample's writes go nowhere. So that the sample can go on when it looks at what it "wrote", the
// bytes are kept here, page by page, over the file as it really is. Names that it created, removed
// or renamed are kept by the directory they are in, which has one identity whichever path leads
// there. That covers what programs usually do to files: temporary files, journals, logs. It does
// not cover directories and links that are created, removed or renamed: these make names `unclear`,
// and then any call about a name ends the sample.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "base/page.h"

namespace shadowprof::emu {

struct FileId {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;

    auto operator<=>(const FileId&) const = default;
};

// The bytes of a regular file as they really were when the sample began, or when it opened the
// file.
class FileContents {
  public:
    virtual ~FileContents() = default;
    // As pread(2): how many bytes, 0 beyond the end, or -errno. Nothing if the file has been
    // written to since: a program that reads what it wrote is ahead of its sample.
    virtual std::optional<std::int64_t> read(std::uint64_t offset, std::span<std::byte> into) = 0;
    // Whether it has been written to since, or somebody may have hidden such a write.
    virtual bool has_changed() const = 0;
    // Whether anybody but the target has a lock that conflicts with this one.
    virtual std::optional<bool> is_locked_by_others(const struct flock&) { return {}; }
};

class FakedFile {
  public:
    // `real` may be null, if the file can only be written.
    FakedFile(std::shared_ptr<FileContents> real, const struct stat& status);
    // For a file that could not be read by its name but can be read by a descriptor.
    void provide(const std::shared_ptr<FileContents>& real) {
        if (!real_) real_ = real;
    }

    // As pread(2); nothing if that is no longer known.
    std::optional<std::int64_t> read(std::uint64_t offset, std::span<std::byte> into);
    void write(std::uint64_t offset, std::span<const std::byte> bytes);
    void resize(std::uint64_t size);

    // Nothing if it was not known at first and has not been set since.
    std::optional<std::uint64_t> size() const {
        return size_is_known_ ? std::optional{size_} : std::nullopt;
    }
    std::shared_ptr<FileContents> real() const { return real_; }
    // Nothing once it was changed in ways that are not kept.
    std::optional<struct stat> status() const;

    void set_permissions(mode_t mode);
    void set_owner(uid_t user, gid_t group);  // -1: unchanged
    bool has_other_rights() const { return has_other_rights_; }
    uid_t owner() const { return status_.st_uid; }
    gid_t group() const { return status_.st_gid; }
    // The file has so many names more than before; 0: another name.
    void change_names(int more);

    void forget_contents() { contents_are_known_ = false; }
    void forget_status() { status_is_known_ = false; }
    void forget_size() { size_is_known_ = false; }

  private:
    using Page = std::array<std::byte, page_size>;

    Page* page_to_write(std::uint64_t number, bool all_of_it);
    bool read_real(std::uint64_t offset, std::span<std::byte> into);
    void note_change();
    void note_change_of_status();

    std::shared_ptr<FileContents> real_;
    struct stat status_;
    std::uint64_t size_;
    std::uint64_t real_size_;  // of the real bytes that are left; after them come pages and zeros
    std::map<std::uint64_t, std::unique_ptr<Page>> pages_;
    bool contents_are_known_ = true;
    bool status_is_known_ = true;
    bool size_is_known_ = true;
    bool has_other_rights_ = false;
};

struct FakedNames {
    struct Name {
        FileId directory;
        std::string leaf;

        auto operator<=>(const Name&) const = default;
    };
    // What a name stands for; nothing if it was removed.
    std::map<Name, std::optional<FileId>> changed;
    bool unclear = false;
    // The directories of these names. Their times and sizes are not kept.
    std::set<FileId> changed_directories;

    bool any() const { return unclear || !changed.empty(); }
    void change(const Name& name, std::optional<FileId> stands_for) {
        changed[name] = stands_for;
        changed_directories.insert(name.directory);
    }
    void lose_track(const Name& name) {
        unclear = true;
        changed_directories.insert(name.directory);
    }
    // The id of a new file that exists only here.
    FileId next_file() { return {made_here, ++files_made_}; }
    static bool is_made_here(const FileId& file) { return file.device == made_here; }

  private:
    static constexpr std::uint64_t made_here = ~std::uint64_t{0};  // no device has this number
    std::uint64_t files_made_ = 0;
};

}  // namespace shadowprof::emu
