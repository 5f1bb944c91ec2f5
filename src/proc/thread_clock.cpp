#include "proc/thread_clock.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/page.h"
#include "proc/tuning.h"

namespace shadowprof::proc {

namespace {

// By the order of perf's registers (asm/perf_regs.h): ax bx cx dx si di bp sp, ip, flags, and from
// the 16th on r8 to r15. Those wanted are numbered like this by the hardware:
constexpr std::uint64_t wanted_registers = 0xff01ff;
constexpr std::array<int, 17> hardware_number = {0, 3, 1,  2,  6,  7,  5,  4, -1 /*ip*/,
                                                 8, 9, 10, 11, 12, 13, 14, 15};

// Takes a record apart, from its beginning.
class Parts {
  public:
    explicit Parts(std::span<const std::byte> bytes) : rest_(bytes) {}

    template <class T>
    T next() {
        T part{};
        if (rest_.size() >= sizeof part) std::memcpy(&part, rest_.data(), sizeof part);
        skip(sizeof part);
        return part;
    }
    std::span<const std::byte> bytes(std::size_t count) {
        const auto part = rest_.first(std::min(count, rest_.size()));
        skip(count);
        return part;
    }

  private:
    void skip(std::size_t count) { rest_ = rest_.subspan(std::min(count, rest_.size())); }
    std::span<const std::byte> rest_;
};

}  // namespace

ThreadClock::~ThreadClock() {
    for (const auto& [tid, watch] : watches_) close(watch);
}

// A power of two of pages.
std::size_t ThreadClock::data_size() const {
    return options_.stack_size == 0
               ? tuning::room_for_counters
               : std::bit_ceil(options_.stack_size * tuning::stacks_kept_of_a_thread);
}

int ThreadClock::open(pid_t tid) const {
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.config = PERF_COUNT_SW_CPU_CLOCK;
    wanted.sample_period = options_.period;
    wanted.sample_type = PERF_SAMPLE_IP;
    if (options_.stack_size > 0) {
        wanted.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        wanted.sample_regs_user = wanted_registers;
        wanted.sample_stack_user = options_.stack_size;
    }
    wanted.exclude_kernel = options_.with_kernel ? 0 : 1;
    wanted.exclude_hv = 1;
    return static_cast<int>(
        syscall(SYS_perf_event_open, &wanted, tid, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

void ThreadClock::close(const Watch& watch) const {
    munmap(watch.pages, page_size + data_size());
    ::close(watch.file);
}

bool ThreadClock::watch(pid_t tid) {
    if (watches_.contains(tid)) return true;
    if (is_refused_ || watches_.size() >= tuning::most_threads_watched) return false;
    Watch watch;
    watch.file = open(tid);
    if (watch.file < 0 && errno != ESRCH && options_.with_kernel) {
        options_.with_kernel = false;
        watch.file = open(tid);
    }
    if (watch.file < 0) {
        is_refused_ = errno != ESRCH;
        return false;
    }
    auto* const pages =
        mmap(nullptr, page_size + data_size(), PROT_READ | PROT_WRITE, MAP_SHARED, watch.file, 0);
    if (pages == MAP_FAILED) {
        // There is a limit to such memory.
        ::close(watch.file);
        is_refused_ = watches_.empty();
        return false;
    }
    watch.pages = static_cast<std::uint8_t*>(pages);
    watches_[tid] = watch;
    return true;
}

void ThreadClock::read(const std::function<void(const Look&)>& use) {
    for (const auto& [tid, watch] : watches_)
        read(watch, [&, tid = tid](const Look& look) {
            auto of_thread = look;
            of_thread.tid = tid;
            use(of_thread);
        });
    forget_ended();
}

// After it was read: nothing more comes from a thread that has ended.
void ThreadClock::forget_ended() {
    std::vector<pollfd> asked;
    for (const auto& [tid, watch] : watches_) asked.push_back({watch.file, 0, 0});
    if (asked.empty() || poll(asked.data(), asked.size(), 0) <= 0) return;
    for (std::size_t n = 0; auto at : std::vector(watches_.begin(), watches_.end())) {
        if (!(asked[n++].revents & POLLHUP)) continue;
        close(at.second);
        watches_.erase(at.first);
    }
}

void ThreadClock::read(const Watch& watch, const std::function<void(const Look&)>& use) {
    auto& page = *reinterpret_cast<perf_event_mmap_page*>(watch.pages);
    const auto* const data = reinterpret_cast<const std::byte*>(watch.pages) + page_size;
    const auto copy = [&, size_of_data = data_size()](std::uint64_t from, std::size_t size) {
        record_.resize(size);
        const auto begin = from % size_of_data;
        const auto first = std::min<std::size_t>(size, size_of_data - begin);
        std::memcpy(record_.data(), data + begin, first);
        std::memcpy(record_.data() + first, data, size - first);
        return std::span<const std::byte>{record_};
    };
    const std::uint64_t head = std::atomic_ref{page.data_head}.load(std::memory_order_acquire);
    std::uint64_t at = page.data_tail;
    while (at + sizeof(perf_event_header) <= head) {
        const auto header = Parts{copy(at, sizeof(perf_event_header))}.next<perf_event_header>();
        if (header.size < sizeof header) break;
        if (header.type == PERF_RECORD_SAMPLE) {
            auto look = look_in(copy(at, header.size).subspan(sizeof header));
            look.in_kernel =
                (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
            use(look);
        } else if (header.type == PERF_RECORD_LOST) {
            Parts parts{copy(at, header.size).subspan(sizeof header)};
            parts.next<std::uint64_t>();  // of which event
            lost_ += parts.next<std::uint64_t>();
        }
        at += header.size;
    }
    std::atomic_ref{page.data_tail}.store(head, std::memory_order_release);
}

ThreadClock::Look ThreadClock::look_in(std::span<const std::byte> record) const {
    Look look;
    Parts parts{record};
    look.at = parts.next<Address>();
    if (options_.stack_size == 0) return look;
    look.has_registers = parts.next<std::uint64_t>() == PERF_SAMPLE_REGS_ABI_64;
    if (!look.has_registers) return look;
    for (const auto number : hardware_number) {
        const auto value = parts.next<std::uint64_t>();
        if (number < 0)
            look.user_at = {value};
        else
            look.general[static_cast<std::size_t>(number)] = value;
    }
    const auto room = parts.next<std::uint64_t>();
    const auto stack = parts.bytes(room);
    const auto copied = room == 0 ? 0 : parts.next<std::uint64_t>();
    look.stack = stack.first(std::min<std::size_t>(copied, stack.size()));
    return look;
}

}  // namespace shadowprof::proc
