#include "proc/look_buffer.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

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

// A power of two of pages.
std::size_t data_size(const LookBuffer::Options& options) {
    return options.stack_size == 0
               ? tuning::room_for_counters
               : std::bit_ceil(options.stack_size * tuning::stacks_kept_of_a_thread);
}

perf_event_mmap_page& head_of(std::uint8_t* pages) {
    return *reinterpret_cast<perf_event_mmap_page*>(pages);
}

}  // namespace

std::optional<LookBuffer> LookBuffer::open(pid_t tid, const Options& options, Refusal& why) {
    perf_event_attr wanted{};
    wanted.size = sizeof wanted;
    wanted.type = PERF_TYPE_SOFTWARE;
    wanted.config = PERF_COUNT_SW_CPU_CLOCK;
    wanted.sample_period = options.period;
    wanted.sample_type = PERF_SAMPLE_IP;
    if (options.stack_size > 0) {
        wanted.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        wanted.sample_regs_user = wanted_registers;
        wanted.sample_stack_user = options.stack_size;
    }
    if (options.at_once) {
        wanted.sample_type |= PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
        wanted.sample_id_all = 1;
        wanted.use_clockid = 1;
        wanted.clockid = CLOCK_MONOTONIC;
        wanted.context_switch = 1;
        wanted.wakeup_events = 1;
    }
    wanted.exclude_kernel = options.with_kernel ? 0 : 1;
    wanted.exclude_hv = 1;
    const int file =
        static_cast<int>(syscall(SYS_perf_event_open, &wanted, tid, -1, -1, PERF_FLAG_FD_CLOEXEC));
    if (file < 0) {
        why = errno == ESRCH ? Refusal::thread_is_gone : Refusal::not_allowed;
        return {};
    }
    auto* const pages =
        mmap(nullptr, page_size + data_size(options), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (pages == MAP_FAILED) {
        // There is a limit to such memory.
        ::close(file);
        why = Refusal::no_memory;
        return {};
    }
    return LookBuffer{tid, options, file, static_cast<std::uint8_t*>(pages)};
}

LookBuffer::LookBuffer(LookBuffer&& other) noexcept
    : tid_(other.tid_),
      options_(other.options_),
      file_(std::exchange(other.file_, -1)),
      pages_(std::exchange(other.pages_, nullptr)),
      lost_(other.lost_),
      record_(std::move(other.record_)) {}

LookBuffer::~LookBuffer() {
    if (pages_) munmap(pages_, page_size + data_size(options_));
    if (file_ >= 0) ::close(file_);
}

bool LookBuffer::has_more() const {
    auto& page = head_of(pages_);
    return std::atomic_ref{page.data_head}.load(std::memory_order_acquire) != page.data_tail;
}

bool LookBuffer::set_period(std::uint64_t nanoseconds) const {
    return ioctl(file_, PERF_EVENT_IOC_PERIOD, &nanoseconds) == 0;
}

void LookBuffer::read(const UseLook& use, const UseSwitch& use_switch) {
    auto& page = head_of(pages_);
    const auto* const data = reinterpret_cast<const std::byte*>(pages_) + page_size;
    const auto copy = [&, size_of_data = data_size(options_)](std::uint64_t from,
                                                              std::size_t size) {
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
        const auto rest = [&] { return copy(at, header.size).subspan(sizeof header); };
        if (header.type == PERF_RECORD_SAMPLE) {
            auto look = look_in(rest());
            look.in_kernel =
                (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
            use(look);
        } else if (header.type == PERF_RECORD_SWITCH && use_switch) {
            use_switch({Parts{rest()}.next<std::uint64_t>(),
                        (header.misc & PERF_RECORD_MISC_SWITCH_OUT) == 0});
        } else if (header.type == PERF_RECORD_LOST) {
            Parts parts{rest()};
            parts.next<std::uint64_t>();  // of which event
            lost_ += parts.next<std::uint64_t>();
        }
        at += header.size;
    }
    std::atomic_ref{page.data_tail}.store(head, std::memory_order_release);
}

LookBuffer::Look LookBuffer::look_in(std::span<const std::byte> record) const {
    Look look;
    look.tid = tid_;
    Parts parts{record};
    look.at = parts.next<Address>();
    if (options_.at_once) {
        look.time = parts.next<std::uint64_t>();
        look.processor = static_cast<int>(parts.next<std::uint64_t>() & 0xffffffff);
    }
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
