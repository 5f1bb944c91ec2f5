#include "model/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"

namespace shadowprof::model {

namespace {

[[noreturn]] void fail(const std::string& path, int error) {
    throw UserError(fmt::format("cannot write {}: {}", path, std::strerror(error)));
}

// The error number, or 0.
int write_and_close(int fd, std::string_view contents) {
    int error = 0;
    while (!contents.empty() && error == 0) {
        const ssize_t n = ::write(fd, contents.data(), contents.size());
        if (n >= 0)
            contents.remove_prefix(static_cast<std::size_t>(n));
        else if (errno != EINTR)
            error = errno;
    }
    if (::close(fd) != 0 && error == 0) error = errno;
    return error;
}

// A link keeps pointing where it did: the file behind it is what is replaced.
std::string behind_links(const std::string& path) {
    char resolved[PATH_MAX];
    return ::realpath(path.c_str(), resolved) ? resolved : path;
}

}  // namespace

void check_writable(const std::string& path) {
    struct stat existing {};
    const bool exists = ::stat(path.c_str(), &existing) == 0;
    if (exists && S_ISDIR(existing.st_mode)) fail(path, EISDIR);
    if (exists && !S_ISREG(existing.st_mode)) {
        if (::access(path.c_str(), W_OK) != 0) fail(path, errno);
        return;
    }
    const auto target = behind_links(path);
    const auto slash = target.rfind('/');
    const auto directory = slash == target.npos ? "." : target.substr(0, slash + 1);
    if (::access(directory.c_str(), W_OK | X_OK) != 0) fail(path, errno);
}

void write_file(const std::string& path, std::string_view contents) {
    struct stat existing {};
    const bool exists = ::stat(path.c_str(), &existing) == 0;
    if (exists && !S_ISREG(existing.st_mode)) {
        const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
        if (fd < 0) fail(path, errno);
        if (const int error = write_and_close(fd, contents)) fail(path, error);
        return;
    }
    const std::string target = behind_links(path);
    const std::string temporary = fmt::format("{}.{}.tmp", target, ::getpid());
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                          exists ? existing.st_mode & 0777 : 0666);
    if (fd < 0) fail(path, errno);
    int error = write_and_close(fd, contents);
    if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
    if (error != 0) {
        ::unlink(temporary.c_str());
        fail(path, error);
    }
}

}  // namespace shadowprof::model
