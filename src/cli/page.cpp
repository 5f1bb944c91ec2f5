#include "cli/page.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace shadowprof::cli {

std::size_t page_width() {
    if (const char* columns = std::getenv("COLUMNS"))
        if (const auto width = std::strtoul(columns, nullptr, 10); width >= 20) return width;
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
    return 100;
}

bool wants_color(bool forbidden) {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return !forbidden && !(no_color && *no_color) && isatty(STDOUT_FILENO) &&
           !(term && std::string{term} == "dumb");
}

}  // namespace shadowprof::cli
