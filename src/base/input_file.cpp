#include "base/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/descriptor.h"

namespace shadowprof {

std::string read_whole_file(const std::string& path, std::size_t most, Source source,
                            ExitStatus exit_status) {
    const auto fail = [&](const std::string& why) {
        throw UserError(fmt::format("cannot read {}: {}", path, why), exit_status);
    };
    const bool may_wait = source == Source::file_or_pipe;
    const Descriptor file(
        may_wait && path == "-"
            ? ::dup(STDIN_FILENO)
            : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | (may_wait ? 0 : O_NONBLOCK)));
    struct stat status {};
    if (file < 0 || ::fstat(file, &status) != 0) fail(std::strerror(errno));
    if (S_ISDIR(status.st_mode)) fail(std::strerror(EISDIR));
    if (!S_ISREG(status.st_mode) && !(may_wait && S_ISFIFO(status.st_mode)))
        fail(may_wait ? "neither a file nor a pipe" : "no file");

    std::string text;
    std::size_t used = 0;
    const auto expected = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
    for (;;) {
        if (used > most)
            fail(most >> 30 > 0 ? fmt::format("larger than {} GiB", most >> 30)
                                : fmt::format("larger than {} MiB", most >> 20));
        if (used == text.size())
            text.resize(used == 0 ? std::min(expected, most) + 4096 : used + used / 2);
        const ssize_t n = ::read(file, text.data() + used, text.size() - used);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) {  // we inherited a pipe that does not block
            pollfd more{file, POLLIN, 0};
            ::poll(&more, 1, -1);
            continue;
        }
        if (n < 0) fail(std::strerror(errno));
        if (n == 0) break;
        used += static_cast<std::size_t>(n);
    }
    text.resize(used);
    return text;
}

}  // namespace shadowprof
