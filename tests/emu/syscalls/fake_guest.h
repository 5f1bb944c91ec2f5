// A guest for tests: memory, descriptors and paths that the test sets up.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>

#include "emu/syscalls/system_calls.h"

namespace shadowprof::emu {

class FakeMemory : public GuestMemory {
  public:
    static constexpr std::uint64_t begin = 0x10000, size = 0x10000;

    bool read(Address from, std::span<std::byte> into) override {
        if (!contains(from, into.size())) return false;
        std::memcpy(into.data(), bytes_.data() + (from.value - begin), into.size());
        return true;
    }
    bool write(Address to, std::span<const std::byte> bytes) override {
        if (!contains(to, bytes.size())) return false;
        std::memcpy(bytes_.data() + (to.value - begin), bytes.data(), bytes.size());
        return true;
    }

    // Places a value and returns its address.
    template <typename T>
    std::uint64_t put(const T& value) {
        next_ = (next_ + 15) & ~std::uint64_t{15};
        const auto at = next_;
        write_as({at}, value);
        next_ += sizeof value;
        return at;
    }
    std::uint64_t put_text(const char* text) {
        const auto at = next_;
        write({at}, std::as_bytes(std::span{text, std::strlen(text) + 1}));
        next_ += std::strlen(text) + 1;
        return at;
    }

    std::string text_at(std::uint64_t at, std::size_t length) {
        std::string text(length, '\0');
        read({at}, std::as_writable_bytes(std::span{text}));
        return text;
    }

  private:
    static bool contains(Address at, std::size_t count) {
        return at.value >= begin && count <= size && at.value - begin <= size - count;
    }
    std::vector<std::byte> bytes_ = std::vector<std::byte>(size);
    std::uint64_t next_ = begin;
};

class FakeContents : public FileContents {
  public:
    explicit FakeContents(std::string text) : text_(std::move(text)) {}
    void change() { is_changed_ = true; }
    bool has_changed() const override { return is_changed_; }
    std::optional<bool> is_locked;  // by others
    std::optional<bool> is_locked_by_others(const struct flock& wanted) override {
        asked_from = wanted.l_whence == SEEK_SET ? wanted.l_start : -1;
        return is_locked;
    }
    std::int64_t asked_from = 0;
    std::optional<std::int64_t> read(std::uint64_t offset, std::span<std::byte> into) override {
        if (is_changed_) return {};
        if (offset >= text_.size()) return 0;
        const auto size = std::min<std::size_t>(into.size(), text_.size() - offset);
        std::memcpy(into.data(), text_.data() + offset, size);
        return static_cast<std::int64_t>(size);
    }

  private:
    std::string text_;
    bool is_changed_ = false;
};

// Paths stand for inodes, on device 1 unless they say otherwise.
class FakeQueries : public GuestQueries {
  public:
    struct File {
        std::uint64_t inode = 0;
        mode_t mode = 0;
        std::string contents;
        std::uint64_t device = 1;
        uid_t owner = 0;
        nlink_t names = 1;
        bool is_written = false;  // since the birth
    };
    std::map<int, Descriptor> files;
    std::map<std::string, File> paths;           // all others are missing
    static constexpr std::uint64_t made_up = 2;  // a device
    int access_error = 0;
    bool other_names = false;
    std::optional<std::uint64_t> cpu_time;
    std::map<int, struct rusage> usages;
    std::optional<AddressRange> scratch_memory;
    std::map<FileId, Mapped> mapped;

    static struct stat status(const File& file) {
        struct stat status {};
        status.st_dev = file.device;
        status.st_ino = file.inode;
        status.st_mode = file.mode;
        status.st_uid = file.owner;
        status.st_nlink = file.names;
        status.st_size = static_cast<off_t>(file.contents.size());
        return status;
    }

    Descriptor descriptor(int fd) override {
        const auto found = files.find(fd);
        if (found != files.end()) return found->second;
        auto closed = std::make_shared<OpenFile>();
        closed->kind = OpenFile::Kind::closed;
        return {std::move(closed), false};
    }
    std::optional<PathStatus> status_of(int, const std::string& path, bool) override {
        const auto* file = find(path);
        if (file == nullptr) return PathStatus{ENOENT, {}};
        PathStatus found{0, status(*file)};
        found.is_written = file->is_written;
        return found;
    }
    bool has_other_names(int) override { return other_names; }
    std::optional<int> access_to(int, const std::string&, int) override { return access_error; }
    bool is_made_up(std::uint64_t device) override { return device == made_up; }
    std::shared_ptr<FileContents> contents_of(int, const std::string& path) override {
        return std::make_shared<FakeContents>(find(path)->contents);
    }
    std::optional<std::uint64_t> process_cpu_time() override { return cpu_time; }
    std::optional<struct rusage> usage(int who) override {
        const auto found = usages.find(who);
        return found == usages.end() ? std::nullopt : std::optional{found->second};
    }
    std::optional<AddressRange> scratch() const override { return scratch_memory; }
    bool is_mapped(const FileId& file, Mapped how) override {
        const auto found = mapped.find(file);
        return found != mapped.end() && found->second >= how;
    }

  private:
    const File* find(std::string path) {
        if (path == ".") path = "/dir";
        if (path.size() > 1 && path.ends_with('/')) path.pop_back();
        const auto found = paths.find(path);
        return found == paths.end() ? nullptr : &found->second;
    }
};

// Descriptors: 0 a pipe, 1 a terminal, 2 a socket; 3 a file opened for reading at offset 100;
// 4 a file opened for reading and writing at offset 0; 5 a directory; 6 a file opened to append;
// 7 a file that the replica opened itself. Of these it holds 5 and 7. Files have 4096 bytes,
// "0123…".
struct FakeGuest {
    FakeMemory memory;
    FakeQueries queries;
    GuestFacts facts{queries};

    static std::string digits() {
        std::string text;
        for (int i = 0; i < 4096; ++i) text += static_cast<char>('0' + i % 10);
        return text;
    }

    FakeGuest() {
        const auto add = [&](int fd, OpenFile::Kind kind, mode_t mode, int flags,
                             std::optional<std::uint64_t> offset, bool is_held = false) {
            auto file = std::make_shared<OpenFile>();
            const auto inode = 1000 + static_cast<std::uint64_t>(fd);
            const bool is_file = kind == OpenFile::Kind::file;
            file->kind = kind;
            file->id = {1, inode};
            file->status_flags = flags;
            file->offset = offset;
            file->status = FakeQueries::status({inode, mode, is_file ? digits() : ""});
            if (is_file) file->contents = std::make_shared<FakeContents>(digits());
            file->is_held = is_held;
            queries.files[fd] = {std::move(file), false};
        };
        using Kind = OpenFile::Kind;
        constexpr int read_only = 0, write_only = 1, read_write = 2, append = 02000;
        add(0, Kind::withdrawn, S_IFIFO, read_only, {});
        add(1, Kind::withdrawn, S_IFCHR, read_write, {});
        add(2, Kind::withdrawn, S_IFSOCK, read_write, {});
        add(3, Kind::file, S_IFREG, read_only, 100);
        add(4, Kind::file, S_IFREG, read_write, 0);
        add(5, Kind::directory, S_IFDIR, read_only, 0, true);
        add(6, Kind::file, S_IFREG, write_only | append, 0);
        add(7, Kind::file, S_IFREG, read_only, 0, true);
        queries.paths = {{"/", {1, S_IFDIR | 0755, ""}},
                         {"/dir", {2, S_IFDIR | 0755, ""}},
                         {"/file", {3, S_IFREG | 0644, digits()}},
                         {"/dir/other", {4, S_IFREG | 0644, "abc"}},
                         {"/four", {1004, S_IFREG | 0644, digits()}},  // what descriptor 4 is
                         {"/dev/tty", {5, S_IFCHR | 0666, ""}}};
        facts.pid = 4000;
        facts.tid = 4001;
    }

    std::optional<Answer> burst(std::int32_t number, std::array<std::uint64_t, 6> arguments = {}) {
        return answer_in_burst({number, arguments}, facts, memory);
    }
    ReplicaAction replica(std::int32_t number, std::array<std::uint64_t, 6> arguments = {}) {
        return decide_in_replica({number, arguments}, facts, memory);
    }
};

}  // namespace shadowprof::emu
