// A guest for tests: memory, descriptors and paths that the test sets up.
#pragma once

#include <cstring>
#include <map>
#include <string>

#include "emu/system_calls.h"

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

    // Places a value and tells where.
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

  private:
    static bool contains(Address at, std::size_t count) {
        return at.value >= begin && count <= size && at.value - begin <= size - count;
    }
    std::vector<std::byte> bytes_ = std::vector<std::byte>(size);
    std::uint64_t next_ = begin;
};

class FakeQueries : public GuestQueries {
  public:
    std::map<int, std::shared_ptr<OpenFile>> files;
    std::map<int, struct stat> statuses;
    std::map<std::string, PathType> paths;  // all others are missing
    std::optional<std::uint64_t> cpu_time;

    std::shared_ptr<OpenFile> open_file(int fd) override {
        const auto found = files.find(fd);
        if (found != files.end()) return found->second;
        auto closed = std::make_shared<OpenFile>();
        closed->kind = OpenFile::Kind::closed;
        return closed;
    }
    std::optional<struct stat> file_status(int fd) override {
        const auto found = statuses.find(fd);
        if (found == statuses.end()) return {};
        return found->second;
    }
    PathType path_type(int, const std::string& path, bool) override {
        const auto found = paths.find(path);
        return found == paths.end() ? PathType::missing : found->second;
    }
    std::optional<std::uint64_t> process_cpu_time() override { return cpu_time; }
};

// Descriptors: 0 a pipe, 1 a terminal, 2 a socket; 3 a file opened for reading at offset 100;
// 4 a file opened for reading and writing at offset 0; 5 a directory; 6 a file opened to append.
struct FakeGuest {
    FakeMemory memory;
    FakeQueries queries;
    GuestFacts facts{queries};

    FakeGuest() {
        using Kind = OpenFile::Kind;
        const auto add = [&](int fd, Kind kind, mode_t mode, int flags,
                             std::optional<std::uint64_t> offset) {
            auto file = std::make_shared<OpenFile>();
            file->kind = kind;
            file->id = {1, 1000 + static_cast<std::uint64_t>(fd)};
            file->status_flags = flags;
            file->offset = offset;
            queries.files[fd] = std::move(file);
            struct stat status {};
            status.st_mode = mode;
            status.st_size = 4096;
            queries.statuses[fd] = status;
        };
        constexpr int read_only = 0, write_only = 1, read_write = 2, append = 02000;
        add(0, Kind::withdrawn, S_IFIFO, read_only, {});
        add(1, Kind::withdrawn, S_IFCHR, read_write, {});
        add(2, Kind::withdrawn, S_IFSOCK, read_write, {});
        add(3, Kind::file, S_IFREG, read_only, 100);
        add(4, Kind::file, S_IFREG, read_write, 0);
        add(5, Kind::directory, S_IFDIR, read_only, 0);
        add(6, Kind::file, S_IFREG, write_only | append, 0);
        queries.paths = {{"/file", PathType::ordinary},
                         {"/dir", PathType::ordinary},
                         {"/dev/tty", PathType::special}};
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
