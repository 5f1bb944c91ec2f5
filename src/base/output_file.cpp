#include "base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/folders.h"

namespace shadowprof {

namespace {

[[noreturn]] void fail(const std::string& path, int error) {
    throw UserError(fmt::format("cannot write {}: {}", path, std::strerror(error)),
                    path.empty() ? ExitStatus::bad_usage : ExitStatus::error);
}

// Lets signals wait, so that none ends us before a temporary file is gone.
class HeldSignals {
  public:
    HeldSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;

  private:
    sigset_t before_;
};

// The functions below return an error number, or 0.

int write_all(int fd, std::string_view contents) {
    while (!contents.empty()) {
        const ssize_t n = ::write(fd, contents.data(), contents.size());
        if (n >= 0) {
            contents.remove_prefix(static_cast<std::size_t>(n));
        } else if (errno == EAGAIN) {  // we inherited a pipe that does not block
            pollfd room{fd, POLLOUT, 0};
            ::poll(&room, 1, -1);
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

using Parts = std::span<const std::string_view>;

int write_all(int fd, Parts contents) {
    for (const auto part : contents)
        if (const int error = write_all(fd, part)) return error;
    return 0;
}

// So that what a rename puts in place of a file is really there after a crash. Pipes and devices
// cannot be told to.
int sync(int fd) {
    return ::fsync(fd) == 0 || errno == EINVAL || errno == EROFS || errno == EINTR ? 0 : errno;
}

// A name in a folder that is open.
class Place {
  public:
    // `path` is what users know it by; its last part is the name.
    Place(Descriptor folder, const std::string& path, bool is_wanted = true)
        : is_wanted_(is_wanted),
          name_(path.substr(path.rfind('/') + 1)),
          folder_(std::move(folder)) {
        if (path.empty()) fail(path, ENOENT);
        if (folder_ < 0) fail(path, errno);
        if (name_.empty() || name_ == "." || name_ == "..") fail(path, EISDIR);
        is_there_ = ::fstatat(folder_, name_.c_str(), &status_, AT_SYMLINK_NOFOLLOW) == 0;
        if (!is_there_ && errno != ENOENT) fail(path, errno);
    }
    explicit Place(const std::string& path)
        : Place(open_folder(path.substr(0, path.rfind('/') + 1)), path) {}

    // What is standard output already is written there, behind what is there.
    int stream() const {
        struct stat named {};
        struct stat open {};
        if (::fstatat(folder_, name_.c_str(), &named, 0) != 0) return -1;
        for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
            if (::fstat(fd, &open) == 0 && named.st_dev == open.st_dev &&
                named.st_ino == open.st_ino && (::fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
                return fd;
        return -1;
    }

    int check() const {
        if (stream() >= 0) return 0;
        if (leads_to_others(folder_, name_)) return EACCES;
        if (is_replaced()) {
            const int error = replace({}, false);
            if (!is_refusal(error)) return error;
            if (!is_there_) return error;
        }
        struct stat behind {};
        if (::fstatat(folder_, name_.c_str(), &behind, 0) == 0 && !S_ISREG(behind.st_mode)) {
            if (S_ISDIR(behind.st_mode)) return EISDIR;
            if (S_ISSOCK(behind.st_mode)) return ENXIO;
            // It is not opened: the reader of a pipe would see its end when we close it again.
            return ::faccessat(folder_, name_.c_str(), W_OK, AT_EACCESS) == 0 ? 0 : errno;
        }
        // A link that leads nowhere makes a new file, here as later.
        return Descriptor(open(O_CREAT)) < 0 ? errno : 0;
    }

    int write(Parts contents, Old old) const {
        if (const int fd = stream(); fd >= 0) return write_all(fd, contents);
        if (leads_to_others(folder_, name_)) return EACCES;
        if (is_replaced())
            if (const int error = replace(contents, true, old); !is_refusal(error)) return error;
        Descriptor file(open(O_CREAT | O_TRUNC));
        if (file < 0) return errno;
        int error = write_all(file, contents);
        if (error == 0) error = sync(file);
        const int late = file.close();
        return error != 0 ? error : late;
    }

  private:
    bool is_replaced() const { return !is_there_ || S_ISREG(status_.st_mode); }

    // Not allowed here: the folder is not ours to change, or the file is mounted by itself.
    static bool is_refusal(int error) {
        return error == EACCES || error == EPERM || error == EROFS || error == EBUSY;
    }

    int open(int flags) const {
        return ::openat(folder_, name_.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | flags, 0666);
    }

    // Without `for_good` it only tries.
    int replace(Parts contents, bool for_good, Old old = Old::replaced) const {
        // Whoever may not write to the file may not replace it. The kernel judges, as for ">".
        if (is_there_ && Descriptor(open(O_CREAT | O_NOFOLLOW | O_NONBLOCK)) < 0) return errno;
        const HeldSignals held;
        std::random_device random;
        std::string temporary;
        int number = -1;
        for (int tries = 0; number < 0 && tries < 100; ++tries) {
            temporary = fmt::format(".shadowprof-{:08x}{:08x}.tmp", random(), random());
            number = ::openat(folder_, temporary.c_str(),
                              O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                              is_there_ || !is_wanted_ ? 0600 : 0666);
            if (number < 0 && errno != EEXIST) break;
        }
        Descriptor file(number);
        if (file < 0) return errno;
        int error = write_all(file, contents);
        if (error == 0 && is_there_) error = take_over_rights(file);
        if (error == 0 && for_good && is_wanted_) error = sync(file);
        if (const int late = file.close(); error == 0) error = late;
        if (error == 0 && for_good) {
            if (old == Old::kept && is_there_ && status_.st_size > 0) keep_old();
            if (::renameat(folder_, temporary.c_str(), folder_, name_.c_str()) == 0) return 0;
            error = errno;
        }
        ::unlinkat(folder_, temporary.c_str(), 0);
        return error;
    }

    // By a second name, so that there is a file of the first one at any time. Where there are no
    // second names, none is kept.
    void keep_old() const {
        const auto name = name_ + ".old";
        struct stat older {};
        if (::fstatat(folder_, name.c_str(), &older, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(older.st_mode))
            ::unlinkat(folder_, name.c_str(), 0);
        ::linkat(folder_, name_.c_str(), folder_, name.c_str(), 0);
    }

    // If the group cannot be kept, its members have the rights of others.
    int take_over_rights(int file) const {
        auto mode = status_.st_mode & 0777;
        if (::fchown(file, status_.st_uid, status_.st_gid) != 0 &&
            ::fchown(file, static_cast<uid_t>(-1), status_.st_gid) != 0)
            mode = (mode & 0707) | (mode & 07) << 3;
        return ::fchmod(file, mode) == 0 ? 0 : errno;
    }

    bool is_wanted_;
    std::string name_;
    Descriptor folder_;
    bool is_there_ = false;
    struct stat status_ {};
};

}  // namespace

void check_writable(const std::string& path) {
    if (const int error = Place(path).check()) fail(path, error);
}

void write_file(const std::string& path, std::string_view contents, Old old) {
    if (const int error = Place(path).write({&contents, 1}, old)) fail(path, error);
}

void write_file_in(int folder, const std::string& name,
                   std::span<const std::string_view> contents) {
    const Place place(Descriptor(::fcntl(folder, F_DUPFD_CLOEXEC, 0)), name, false);
    if (const int error = place.write(contents, Old::replaced)) fail(name, error);
}

std::optional<std::string> write_elsewhere(std::string_view contents) {
    const char* chosen = std::getenv("TMPDIR");
    for (const std::string folder : {chosen && *chosen ? chosen : "/tmp", "."}) {
        auto name = folder + "/shadowprof-XXXXXX.json";
        Descriptor file(::mkostemps(name.data(), 5, O_CLOEXEC));
        if (file < 0) continue;
        if (write_all(file, contents) == 0 && sync(file) == 0 && file.close() == 0) return name;
        ::unlink(name.c_str());
    }
    return {};
}

void write_to_stdout(std::string_view text) {
    int error = write_all(STDOUT_FILENO, text);
    // Closing a copy has a network file system report what it could not write.
    if (error == 0) error = Descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)).close();
    if (error != 0)
        throw UserError(fmt::format("cannot write standard output: {}", std::strerror(error)));
}

}  // namespace shadowprof
