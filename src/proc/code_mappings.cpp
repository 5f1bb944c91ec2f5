#include "proc/code_mappings.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace shadowprof::proc {
namespace {

// struct procmap_query of <linux/fs.h>, which Debian 12 lacks.
struct Query {
    std::uint64_t size = sizeof(Query), flags = 0, at = 0;
    std::uint64_t begin = 0, end = 0, has = 0, page_size = 0, offset = 0, inode = 0;
    std::uint32_t device_major = 0, device_minor = 0, name_size = 0, build_id_size = 0;
    std::uint64_t name = 0, build_id = 0;
};
constexpr std::uint64_t readable = 1, writable = 2, executable = 4, shared = 8, or_next = 16;
constexpr auto request = _IOWR('f', 17, Query);

// The first one from there on that is executable.
bool ask(int file, Address from, Query& query) {
    query = {};
    query.flags = executable | or_next;
    query.at = from.value;
    return ioctl(file, request, &query) == 0;
}

bool is_same(const Query& now, const Mapping& known) {
    const auto has = [&](std::uint64_t what) { return (now.has & what) != 0; };
    return now.begin == known.range.begin.value && now.end == known.range.end.value &&
           has(readable) == known.readable && has(writable) == known.writable &&
           has(shared) == known.shared && now.inode == known.inode &&
           (known.inode == 0 || (now.offset == known.file_offset &&
                                 makedev(now.device_major, now.device_minor) == known.device));
}

// The kernel lists its own page, which is no mapping of the process.
constexpr Address kernel_half{std::uint64_t{1} << 63};

}  // namespace

CodeMappings::CodeMappings(pid_t pid)
    : file_(open(fmt::format("/proc/{}/maps", pid).c_str(), O_RDONLY | O_CLOEXEC)) {}

CodeMappings::~CodeMappings() {
    if (file_ >= 0) close(file_);
}

bool CodeMappings::are_as_in(const Maps& known) const {
    Address from{};
    Query now;
    for (const auto& mapping : known.mappings()) {
        if (!mapping.executable || mapping.range.begin >= kernel_half) continue;
        if (!ask(file_, from, now) || !is_same(now, mapping)) return false;
        from = mapping.range.end;
    }
    return !ask(file_, from, now) && errno == ENOENT;
}

bool CodeMappings::can_be_asked() {
    static const bool can = [] {
        const CodeMappings own{getpid()};
        Query any;
        return ask(own.file_, Address{}, any);
    }();
    return can;
}

}  // namespace shadowprof::proc
