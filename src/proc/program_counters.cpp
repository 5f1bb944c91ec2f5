#include "proc/program_counters.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/page.h"

namespace shadowprof::proc {

namespace {

constexpr std::size_t most_watched = 64;
constexpr std::size_t data_pages = 2;  // a power of two
constexpr std::size_t data_size = data_pages * page_size;

int open_clock(pid_t tid, std::uint64_t period) {
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.config = PERF_COUNT_SW_CPU_CLOCK;
    wanted.sample_period = period;
    wanted.sample_type = PERF_SAMPLE_IP;
    wanted.exclude_kernel = 1;
    wanted.exclude_hv = 1;
    return static_cast<int>(
        syscall(SYS_perf_event_open, &wanted, tid, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

bool has_ended(int file) {
    pollfd asked{file, 0, 0};
    return poll(&asked, 1, 0) > 0 && (asked.revents & POLLHUP);
}

}  // namespace

ProgramCounters::~ProgramCounters() {
    for (const auto& [tid, watch] : watches_) close(watch);
}

void ProgramCounters::close(const Watch& watch) {
    munmap(watch.pages, page_size + data_size);
    ::close(watch.file);
}

void ProgramCounters::watch(pid_t tid) {
    if (is_refused_ || watches_.size() >= most_watched || watches_.contains(tid)) return;
    Watch watch;
    watch.file = open_clock(tid, period_);
    if (watch.file < 0) {
        is_refused_ = errno != ESRCH;
        return;
    }
    auto* const pages =
        mmap(nullptr, page_size + data_size, PROT_READ | PROT_WRITE, MAP_SHARED, watch.file, 0);
    if (pages == MAP_FAILED) {
        ::close(watch.file);
        is_refused_ = true;
        return;
    }
    watch.pages = static_cast<std::uint8_t*>(pages);
    watches_[tid] = watch;
}

std::vector<Address> ProgramCounters::read() {
    std::vector<Address> seen;
    for (auto at = watches_.begin(); at != watches_.end();) {
        read(at->second, seen);
        if (has_ended(at->second.file)) {
            close(at->second);
            at = watches_.erase(at);
        } else {
            ++at;
        }
    }
    return seen;
}

void ProgramCounters::read(const Watch& watch, std::vector<Address>& append_to) {
    auto& page = *reinterpret_cast<perf_event_mmap_page*>(watch.pages);
    const auto* const data = watch.pages + page_size;
    const auto copy = [&](std::uint64_t from, void* into, std::size_t size) {
        for (std::size_t i = 0; i < size; ++i)
            static_cast<std::uint8_t*>(into)[i] = data[(from + i) % data_size];
    };
    const std::uint64_t head = std::atomic_ref{page.data_head}.load(std::memory_order_acquire);
    std::uint64_t at = page.data_tail;
    while (at + sizeof(perf_event_header) <= head) {
        perf_event_header header{};
        copy(at, &header, sizeof header);
        if (header.size < sizeof header) break;
        if (header.type == PERF_RECORD_SAMPLE) {
            Address place;
            copy(at + sizeof header, &place.value, sizeof place.value);
            append_to.push_back(place);
        }
        at += header.size;
    }
    std::atomic_ref{page.data_tail}.store(head, std::memory_order_release);
}

}  // namespace shadowprof::proc
