#include "proc/page_map.h"

#include <fcntl.h>
#include <fmt/format.h>

namespace shadowprof::proc {

PageMap::PageMap(pid_t pid)
    : file_(open(fmt::format("/proc/{}/pagemap", pid).c_str(), O_RDONLY | O_CLOEXEC)) {}

PageMap::~PageMap() {
    if (file_ >= 0) close(file_);
}

}  // namespace shadowprof::proc
