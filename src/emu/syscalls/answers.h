// Answers: results that are computed from what is known, without executing anything. They serve
// bursts and replicas alike. Each function is followed by the rule that names it. Private to
// system_calls.cpp.
#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "emu/syscalls/rules.h"

namespace shadowprof::emu::rules {

using MaybeAnswer = std::optional<Answer>;

inline MaybeAnswer fails(int error) {
    return Answer{-error};
}

inline MaybeAnswer succeed(Request&) {
    return Answer{0};
}
inline constexpr BurstRule succeeds{"answered: success", succeed};

inline MaybeAnswer not_implemented(Request&) {
    return fails(ENOSYS);
}
inline constexpr BurstRule is_not_implemented{"answered: ENOSYS, as every x86-64 kernel does",
                                              not_implemented};

// The call takes a pointer for the old value, which is not known.
template <std::size_t old_value>
MaybeAnswer succeed_if_not_asked(Request& request) {
    if (!request.is_null(old_value)) return {};
    return Answer{0};
}
template <std::size_t old_value>
inline constexpr BurstRule succeeds_unless_asked{
    "answered: success, if the old value is not asked for; otherwise ends",
    succeed_if_not_asked<old_value>};

// --- Who the program is ---

inline MaybeAnswer process_id(Request& request) {
    return Answer{request.facts.pid};
}
inline constexpr BurstRule tells_pid{"answered: the target's process id", process_id};

inline MaybeAnswer thread_id(Request& request) {
    return Answer{request.facts.tid};
}
inline constexpr BurstRule tells_tid{"answered: the target's thread id", thread_id};

template <auto id>
MaybeAnswer id_if_known(Request& request) {
    const auto& known = request.facts.*id;
    if (!known) return {};
    return Answer{*known};
}
inline constexpr BurstRule tells_parent{"answered: the target's parent, if known; otherwise ends",
                                        id_if_known<&GuestFacts::parent>};

inline bool is_sampled(const Request& request, std::size_t argument) {
    const auto id = request.int_argument(argument);
    return id == 0 || id == request.facts.tid || id == request.facts.pid;
}

template <auto id>
MaybeAnswer own_id_if_known(Request& request) {
    if (!is_sampled(request, 0)) return {};
    return id_if_known<id>(request);
}
inline constexpr BurstRule tells_group{"answered, if known; otherwise ends",
                                       id_if_known<&GuestFacts::group>};
inline constexpr BurstRule tells_group_of{"answered of itself, if known; otherwise ends",
                                          own_id_if_known<&GuestFacts::group>};
inline constexpr BurstRule tells_session_of{"answered of itself, if known; otherwise ends",
                                            own_id_if_known<&GuestFacts::session>};

template <auto member>
MaybeAnswer credential(Request& request) {
    if (!request.facts.credentials) return {};
    return Answer{(*request.facts.credentials).*member};
}
using Credentials = GuestFacts::Credentials;
inline constexpr BurstRule tells_uid{"answered, if known; otherwise ends",
                                     credential<&Credentials::uid>};
inline constexpr BurstRule tells_effective_uid{"answered, if known; otherwise ends",
                                               credential<&Credentials::effective_uid>};
inline constexpr BurstRule tells_gid{"answered, if known; otherwise ends",
                                     credential<&Credentials::gid>};
inline constexpr BurstRule tells_effective_gid{"answered, if known; otherwise ends",
                                               credential<&Credentials::effective_gid>};

template <auto real, auto effective, auto saved>
MaybeAnswer three_credentials(Request& request) {
    if (!request.facts.credentials) return {};
    const auto& known = *request.facts.credentials;
    const bool written = request.memory.write_as(request.address(0), known.*real) &&
                         request.memory.write_as(request.address(1), known.*effective) &&
                         request.memory.write_as(request.address(2), known.*saved);
    return written ? Answer{0} : fails(EFAULT);
}
inline constexpr BurstRule tells_three_uids{
    "answered, if known; otherwise ends",
    three_credentials<&Credentials::uid, &Credentials::effective_uid, &Credentials::saved_uid>};
inline constexpr BurstRule tells_three_gids{
    "answered, if known; otherwise ends",
    three_credentials<&Credentials::gid, &Credentials::effective_gid, &Credentials::saved_gid>};

// --- Time ---

inline MaybeAnswer put_nanoseconds(Request& request, std::size_t argument,
                                   std::optional<std::uint64_t> time) {
    if (!time) return {};
    constexpr std::uint64_t second = 1'000'000'000;
    const timespec result{static_cast<time_t>(*time / second), static_cast<long>(*time % second)};
    return request.memory.write_as(request.address(argument), result) ? Answer{0} : fails(EFAULT);
}

inline MaybeAnswer cpu_clock(Request& request) {
    switch (request.int_argument(0)) {
        case CLOCK_PROCESS_CPUTIME_ID:
            return put_nanoseconds(request, 1, request.facts.queries.process_cpu_time());
        case CLOCK_THREAD_CPUTIME_ID:
            return put_nanoseconds(request, 1, request.facts.queries.thread_cpu_time());
        default:
            return {};
    }
}

inline MaybeAnswer clock_now(Request& request) {
    const auto id = request.int_argument(0);
    switch (id) {
        case CLOCK_REALTIME:
        case CLOCK_REALTIME_COARSE:
        case CLOCK_TAI:
            break;
        case CLOCK_MONOTONIC:
        case CLOCK_MONOTONIC_RAW:
        case CLOCK_MONOTONIC_COARSE:
        case CLOCK_BOOTTIME:
            if (!request.facts.same_time_namespace) return {};
            break;
        default:
            return cpu_clock(request);
    }
    timespec now{};
    if (clock_gettime(id, &now) != 0) return {};
    return request.memory.write_as(request.address(1), now) ? Answer{0} : fails(EFAULT);
}
inline constexpr BurstRule tells_clock{
    "answered from the host's clocks and the target's CPU time, if known; otherwise ends",
    clock_now};

inline MaybeAnswer clock_resolution(Request& request) {
    const auto id = request.int_argument(0);
    timespec resolution{};
    if (id < 0 || clock_getres(id, &resolution) != 0) return {};
    if (request.is_null(1)) return Answer{0};
    return request.memory.write_as(request.address(1), resolution) ? Answer{0} : fails(EFAULT);
}
inline constexpr BurstRule tells_clock_resolution{"answered", clock_resolution};

inline MaybeAnswer time_of_day(Request& request) {
    timeval now{};
    struct timezone zone {};
    if (syscall(SYS_gettimeofday, &now, &zone) != 0) return {};
    if (!request.is_null(0) && !request.memory.write_as(request.address(0), now)) {
        return fails(EFAULT);
    }
    if (!request.is_null(1) && !request.memory.write_as(request.address(1), zone)) {
        return fails(EFAULT);
    }
    return Answer{0};
}
inline constexpr BurstRule tells_time_of_day{"answered: the host's time", time_of_day};

inline MaybeAnswer seconds_now(Request& request) {
    // What the kernel counts seconds by; the fine clock is already in the next one now and then.
    timespec now{};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (!request.is_null(0) && !request.memory.write_as(request.address(0), now.tv_sec)) {
        return fails(EFAULT);
    }
    return Answer{now.tv_sec};
}
inline constexpr BurstRule tells_seconds{"answered: the host's time", seconds_now};

inline bool is_valid(const timespec& time) {
    return time.tv_sec >= 0 && time.tv_nsec >= 0 && time.tv_nsec < 1'000'000'000;
}

inline MaybeAnswer sleep_for(Request& request, std::size_t argument) {
    const auto duration = request.memory.read_as<timespec>(request.address(argument));
    if (!duration) return fails(EFAULT);
    return is_valid(*duration) ? Answer{0} : fails(EINVAL);
}
inline MaybeAnswer nanosleep_now(Request& request) {
    return sleep_for(request, 0);
}
inline constexpr BurstRule sleeps_no_time{"answered: slept, without waiting", nanosleep_now};

// Until a time that is to come, too, would be a lie that the next look at the clock uncovers; many
// programs then loop.
inline MaybeAnswer clock_nanosleep_now(Request& request) {
    if (request.int_argument(1) == 0) return sleep_for(request, 2);
    return {};
}
inline constexpr BurstRule sleeps_no_time_if_relative{
    "answered: slept, without waiting, if relative; otherwise ends", clock_nanosleep_now};

// poll and select without a descriptor are ways to sleep.
inline MaybeAnswer poll_nothing(Request& request) {
    if (request.argument(1) != 0 || request.int_argument(2) < 0) return {};
    return Answer{0};
}
inline constexpr BurstRule sleeps_no_time_if_no_descriptors{
    "answered: slept, without waiting, if no descriptor is given; otherwise ends", poll_nothing};

inline MaybeAnswer ppoll_nothing(Request& request) {
    // A signal mask of its own would let other signals in.
    if (request.argument(1) != 0 || request.is_null(2) || !request.is_null(3)) return {};
    if (const auto answer = sleep_for(request, 2); answer->result != 0) return answer;
    return request.memory.write_as(request.address(2), timespec{}) ? Answer{0} : fails(EFAULT);
}
inline constexpr BurstRule ppoll_sleeps_no_time{
    "answered: slept, without waiting, if no descriptor is given; otherwise ends", ppoll_nothing};

template <typename Time>
MaybeAnswer select_nothing(Request& request) {
    if (request.int_argument(0) != 0 || !request.is_null(1) || !request.is_null(2) ||
        !request.is_null(3) || request.is_null(4)) {
        return {};
    }
    if (request.name == "pselect6" && !request.is_null(5)) {
        const auto mask = request.memory.read_as<std::uint64_t>(request.address(5));
        if (!mask) return fails(EFAULT);
        if (*mask != 0) return {};
    }
    if (!request.memory.read_as<Time>(request.address(4))) return fails(EFAULT);
    return request.memory.write_as(request.address(4), Time{}) ? Answer{0} : fails(EFAULT);
}
inline constexpr BurstRule select_sleeps_no_time{
    "answered: slept, without waiting, if no descriptor is given; otherwise ends",
    select_nothing<timeval>};
inline constexpr BurstRule pselect_sleeps_no_time{
    "answered: slept, without waiting, if no descriptor is given; otherwise ends",
    select_nothing<timespec>};

// --- The processor ---

inline MaybeAnswer processor(Request& request) {
    unsigned cpu = 0, node = 0;
    if (getcpu(&cpu, &node) != 0) return {};
    const bool written = (request.is_null(0) || request.memory.write_as(request.address(0), cpu)) &&
                         (request.is_null(1) || request.memory.write_as(request.address(1), node));
    return written ? Answer{0} : fails(EFAULT);
}
inline constexpr BurstRule tells_processor{"answered: the profiler's processor", processor};

inline MaybeAnswer memory_barrier(Request& request) {
    if (request.int_argument(0) == MEMBARRIER_CMD_QUERY) return {};
    return Answer{0};
}
inline constexpr BurstRule barrier_succeeds{"answered: success, unless it is a query, which ends",
                                            memory_barrier};

inline MaybeAnswer random_bytes(Request& request) {
    constexpr std::uint64_t most = 1 << 20;
    const auto size = request.argument(1);
    if (size > most || (request.argument(2) & ~std::uint64_t{GRND_NONBLOCK | GRND_RANDOM}) != 0) {
        return {};
    }
    std::vector<std::byte> bytes(size);
    std::size_t got = 0;
    while (got < size) {
        const auto more = getrandom(bytes.data() + got, size - got, GRND_NONBLOCK);
        if (more <= 0) return {};
        got += static_cast<std::size_t>(more);
    }
    if (size != 0 && !request.memory.write(request.address(0), bytes)) return fails(EFAULT);
    return Answer{static_cast<std::int64_t>(size)};
}
inline constexpr BurstRule gives_random_bytes{"answered: random bytes of the host", random_bytes};

// --- Signals ---

constexpr std::uint64_t signal_bit(int signal) {
    return std::uint64_t{1} << (signal - 1);
}
constexpr std::uint64_t unblockable = signal_bit(SIGKILL) | signal_bit(SIGSTOP);
constexpr std::uint64_t kernel_sigset_size = 8;

inline MaybeAnswer change_signal_mask(Request& request) {
    if (request.argument(3) != kernel_sigset_size) return fails(EINVAL);
    auto& mask = request.facts.signal_mask;
    const auto old = mask;
    if (!request.is_null(1)) {
        const auto set = request.memory.read_as<std::uint64_t>(request.address(1));
        if (!set) return fails(EFAULT);
        auto changed = old;
        switch (request.int_argument(0)) {
            case SIG_BLOCK:
                changed |= *set;
                break;
            case SIG_UNBLOCK:
                changed &= ~*set;
                break;
            case SIG_SETMASK:
                changed = *set;
                break;
            default:
                return fails(EINVAL);
        }
        changed &= ~unblockable;
        // Its handler would run now.
        if ((request.facts.pending_signals & ~changed) != 0) return {};
        mask = changed;
        request.facts.idle_signals &= changed;
    }
    if (!request.is_null(2) && !request.memory.write_as(request.address(2), old)) {
        return fails(EFAULT);
    }
    return Answer{0};
}
inline constexpr BurstRule keeps_signal_mask{
    "answered; the sample keeps its own mask (ends if a pending signal is unblocked)",
    change_signal_mask};

inline MaybeAnswer pending_signals(Request& request) {
    if (request.argument(1) > kernel_sigset_size) return fails(EINVAL);
    const auto& facts = request.facts;
    const auto pending = (facts.pending_signals | facts.idle_signals) & facts.signal_mask;
    const auto bytes = std::as_bytes(std::span{&pending, 1}).first(request.argument(1));
    return request.memory.write(request.address(0), bytes) ? Answer{0} : fails(EFAULT);
}
inline constexpr BurstRule tells_pending_signals{"answered", pending_signals};

inline MaybeAnswer probe_self(Request& request) {
    const bool is_probe = request.int_argument(1) == 0;
    if (!is_probe || request.int_argument(0) != request.facts.pid) return {};
    return Answer{0};
}
inline constexpr BurstRule probe_succeeds{"answered if signal 0 to itself; otherwise ends",
                                          probe_self};

inline MaybeAnswer probe_own_thread(Request& request) {
    const bool is_tkill = request.name == "tkill";
    const auto tid = request.int_argument(is_tkill ? 0 : 1);
    const auto signal = request.int_argument(is_tkill ? 1 : 2);
    if (signal != 0 || tid != request.facts.tid) return {};
    if (!is_tkill && request.int_argument(0) != request.facts.pid) return fails(ESRCH);
    return Answer{0};
}
inline constexpr BurstRule thread_probe_succeeds{"answered if signal 0 to itself; otherwise ends",
                                                 probe_own_thread};

// --- Futexes: nobody else runs in the sample, so waking wakes nobody and waiting never ends ---

inline MaybeAnswer differs_from(Request& request, std::uint64_t expected) {
    const auto value = request.memory.read_as<std::uint32_t>(request.address(0));
    if (!value) return fails(EFAULT);
    if (*value != static_cast<std::uint32_t>(expected)) return fails(EAGAIN);
    return {};
}

inline MaybeAnswer futex_now(Request& request) {
    switch (request.int_argument(1) & FUTEX_CMD_MASK) {
        case FUTEX_WAKE:
        case FUTEX_WAKE_BITSET:
        case FUTEX_REQUEUE:
            return Answer{0};
        case FUTEX_WAIT:
        case FUTEX_WAIT_BITSET:
            return differs_from(request, request.argument(2));
        case FUTEX_CMP_REQUEUE: {
            const auto differs = differs_from(request, request.argument(5));
            return differs ? differs : Answer{0};
        }
        default:
            return {};
    }
}
inline constexpr BurstRule futex_without_others{
    "WAKE, REQUEUE: answered, 0 woken; WAIT: EAGAIN if the value differs; otherwise ends",
    futex_now};

inline MaybeAnswer futex2_wait(Request& request) {
    constexpr std::uint64_t size_mask = 3, size_32 = 2;
    if ((request.argument(3) & size_mask) != size_32) return {};
    return differs_from(request, request.argument(1));
}
inline constexpr BurstRule waits_only_in_vain{
    "answered: EAGAIN if the value differs; otherwise ends", futex2_wait};

// --- Output ---

constexpr std::uint64_t most_bytes_a_call = 0x7ffff000;  // MAX_RW_COUNT
constexpr std::uint64_t most_pieces = 1024;              // UIO_MAXIOV

// Programs that walk stacks write from doubtful addresses to learn whether they are mapped.
inline bool is_readable(GuestMemory& memory, Address begin, std::uint64_t size) {
    return size == 0 ||
           (memory.read_as<std::byte>(begin) && memory.read_as<std::byte>(begin + (size - 1)));
}

// What a call moves between memory and a file.
struct Piece {
    Address begin;
    std::uint64_t size = 0;
};
struct Pieces {
    std::vector<Piece> pieces;
    std::int64_t size = 0;  // of all, or -errno
};

inline Pieces pieces_in_buffer(Address begin, std::uint64_t size) {
    size = std::min(size, most_bytes_a_call);
    return {{{begin, size}}, static_cast<std::int64_t>(size)};
}
// Of an iovec array.
inline Pieces pieces_in_array(GuestMemory& memory, Address array, std::uint64_t count) {
    if (count > most_pieces) return {{}, -EINVAL};
    Pieces all;
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto piece = memory.read_as<iovec>(array + i * sizeof(iovec));
        if (!piece) return {{}, -EFAULT};
        if (static_cast<std::int64_t>(piece->iov_len) < 0) return {{}, -EINVAL};
        const auto size = std::min<std::uint64_t>(
            piece->iov_len, most_bytes_a_call - static_cast<std::uint64_t>(all.size));
        all.pieces.push_back({{reinterpret_cast<std::uint64_t>(piece->iov_base)}, size});
        all.size += static_cast<std::int64_t>(size);
    }
    return all;
}

// To be written; nothing if only a part of them could be.
inline std::optional<Pieces> readable(GuestMemory& memory, Pieces pieces) {
    if (pieces.size < 0) return pieces;
    bool is_first = true;
    for (const auto& [begin, size] : pieces.pieces) {
        if (size == 0) continue;
        if (!is_readable(memory, begin, size)) {
            if (is_first && !memory.read_as<std::byte>(begin)) return Pieces{{}, -EFAULT};
            return {};
        }
        is_first = false;
    }
    return pieces;
}
inline std::optional<Pieces> buffer_to_write(Request& r) {
    return readable(r.memory, pieces_in_buffer(r.address(1), r.argument(2)));
}
inline std::optional<Pieces> array_to_write(Request& r) {
    return readable(r.memory, pieces_in_array(r.memory, r.address(1), r.argument(2)));
}

inline bool is_writable(const OpenFile& file) {
    if (file.is_read_end) return false;
    if (!file.status_flags) return true;
    return (*file.status_flags & O_PATH) == 0 && (*file.status_flags & O_ACCMODE) != O_RDONLY;
}

// The file as the sample would see it from now on; null if nothing is known of it.
inline FakedFile* faked(GuestFacts& facts, const OpenFile& file) {
    if (file.kind != OpenFile::Kind::file) return nullptr;
    if (auto* known = facts.faked.file(file.id)) {
        known->provide(file.contents);
        return known;
    }
    if (!file.status) return nullptr;
    const auto status = facts.faked.status_of(file.id, *file.status);
    return &facts.faked.files.try_emplace(file.id, file.contents, status).first->second;
}

inline void write_to(FakedFile& file, std::uint64_t offset, GuestMemory& memory,
                     const Pieces& pieces) {
    constexpr std::uint64_t most_at_once = 1 << 20;
    std::vector<std::byte> bytes;
    for (auto [begin, size] : pieces.pieces) {
        while (size > 0) {
            bytes.resize(std::min(size, most_at_once));
            if (!memory.read(begin, bytes)) {
                file.forget_contents();
                return;
            }
            file.write(offset, bytes);
            offset += bytes.size();
            begin += bytes.size();
            size -= bytes.size();
        }
    }
}

constexpr std::int64_t own_offset = -1;  // of the file, which moves

inline bool has_no_offset(const OpenFile& file) {
    const auto& status = file.status;
    return status && (S_ISFIFO(status->st_mode) || S_ISSOCK(status->st_mode));
}

inline constexpr const char* would_show_in_memory = "to a file that is mapped";

inline bool is_mapped(GuestFacts& facts, const FileId& file) {
    return facts.mapped_here.count(file) != 0 || facts.queries.is_mapped(file, Mapped::at_all);
}
// What is written here does not get into memory.
inline bool would_change_memory(Request& request) {
    if (!is_mapped(request.facts, request.file().id)) return false;
    request.why_no_answer = would_show_in_memory;
    return true;
}

inline MaybeAnswer accept(Request& request, const std::optional<Pieces>& pieces,
                          std::int64_t offset) {
    auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed || !is_writable(file)) return fails(EBADF);
    if (!pieces) return {};
    if (file.kind == OpenFile::Kind::withdrawn && !file.is_certain()) return {};
    if (pieces->size <= 0 || file.kind != OpenFile::Kind::file) return Answer{pieces->size};
    if (would_change_memory(request)) return {};

    auto* as_seen = faked(request.facts, file);
    if (as_seen == nullptr || !file.status_flags) return {};
    const bool moves = offset == own_offset;
    if (moves && !file.offset) return {};
    auto at = moves ? *file.offset : static_cast<std::uint64_t>(offset);
    if ((*file.status_flags & O_APPEND) != 0) {
        const auto size = as_seen->size();
        if (!size) return {};
        at = *size;
    }
    write_to(*as_seen, at, request.memory, *pieces);
    if (moves) file.offset = at + static_cast<std::uint64_t>(pieces->size);
    return Answer{pieces->size};
}
inline MaybeAnswer accept_at(Request& request, const std::optional<Pieces>& pieces) {
    const auto offset = static_cast<std::int64_t>(request.argument(3));
    if (offset < 0) return fails(EINVAL);
    if (has_no_offset(request.file())) return fails(ESPIPE);
    return accept(request, pieces, offset);
}

inline MaybeAnswer write_accepted(Request& r) {
    return accept(r, buffer_to_write(r), own_offset);
}
inline MaybeAnswer pwrite_accepted(Request& r) {
    return accept_at(r, buffer_to_write(r));
}
inline MaybeAnswer writev_accepted(Request& r) {
    return accept(r, array_to_write(r), own_offset);
}
inline MaybeAnswer pwritev_accepted(Request& r) {
    return accept_at(r, array_to_write(r));
}
// With flags it may be asked not to wait, or to write elsewhere.
inline MaybeAnswer pwritev2_accepted(Request& r) {
    if (r.argument(5) != 0) return {};
    if (static_cast<std::int64_t>(r.argument(3)) == own_offset) return writev_accepted(r);
    return pwritev_accepted(r);
}
inline constexpr const char* accepted_text =
    "answered: all bytes written, unless to a file that is known to be mapped, which ends";
inline constexpr BurstRule accepts_write{accepted_text, write_accepted};
inline constexpr BurstRule accepts_pwrite{accepted_text, pwrite_accepted};
inline constexpr BurstRule accepts_writev{accepted_text, writev_accepted};
inline constexpr BurstRule accepts_pwritev{accepted_text, pwritev_accepted};
inline constexpr BurstRule accepts_pwritev2{
    "answered: all bytes written, if without flags; otherwise ends", pwritev2_accepted};

inline std::optional<Pieces> message_to_send(GuestMemory& memory, Address at) {
    const auto message = memory.read_as<msghdr>(at);
    if (!message) return Pieces{{}, -EFAULT};
    return readable(memory,
                    pieces_in_array(memory, {reinterpret_cast<std::uint64_t>(message->msg_iov)},
                                    message->msg_iovlen));
}
inline MaybeAnswer accept_sending(Request& request, const std::optional<Pieces>& pieces) {
    const auto& file = request.file();
    const auto kind = file.kind;
    if (kind == OpenFile::Kind::file || kind == OpenFile::Kind::directory) return fails(ENOTSOCK);
    return accept(request, pieces, own_offset);
}
inline MaybeAnswer sendto_accepted(Request& r) {
    return accept_sending(r, buffer_to_write(r));
}
inline MaybeAnswer sendmsg_accepted(Request& request) {
    return accept_sending(request, message_to_send(request.memory, request.address(1)));
}
inline MaybeAnswer sendmmsg_accepted(Request& request) {
    const auto count = std::min(request.argument(2) & 0xffffffffu, most_pieces);
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto at = request.address(1) + i * sizeof(mmsghdr);
        const auto size = accept_sending(request, message_to_send(request.memory, at));
        if (!size) return {};
        if (size->result < 0) return i == 0 ? size : Answer{static_cast<std::int64_t>(i)};
        const auto sent = static_cast<unsigned>(size->result);
        if (!request.memory.write_as(at + offsetof(mmsghdr, msg_len), sent)) return fails(EFAULT);
    }
    return Answer{static_cast<std::int64_t>(count)};
}
inline constexpr BurstRule accepts_send{"answered: all bytes sent", sendto_accepted};
inline constexpr BurstRule accepts_sendmsg{"answered: all bytes sent", sendmsg_accepted};
inline constexpr BurstRule accepts_sendmmsg{"answered: all bytes of all messages sent",
                                            sendmmsg_accepted};

inline MaybeAnswer accept_for_file(Request& request) {
    const auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return fails(EBADF);
    if (file.kind == OpenFile::Kind::withdrawn) return {};
    return Answer{0};
}
inline constexpr BurstRule file_call_succeeds{
    "answered: success, unless known to be no file; otherwise ends", accept_for_file};

// To be seen by later calls. `first` is the argument behind the file.
inline bool changes_owner(const Request& request) {
    return request.name.ends_with("chown") || request.name == "fchownat";
}
inline void change_attributes(const Request& request, FakedFile& file, std::size_t first) {
    if (request.name.ends_with("chmod") || request.name.starts_with("fchmodat")) {
        file.set_permissions(static_cast<mode_t>(request.argument(first)));
    } else if (changes_owner(request)) {
        file.set_owner(static_cast<uid_t>(request.argument(first)),
                       static_cast<gid_t>(request.argument(first + 1)));
    } else {
        file.forget_status();
    }
}

inline MaybeAnswer accept_change_of_file(Request& request) {
    const auto answer = accept_for_file(request);
    if (auto* file = faked(request.facts, request.file()); file && answer == Answer{0}) {
        change_attributes(request, *file, 1);
    }
    return answer;
}
inline constexpr BurstRule file_change_succeeds{
    "answered: success, unless known to be no file; otherwise ends", accept_change_of_file};

inline MaybeAnswer resize_accepted(Request& request) {
    const auto answer = accept_for_file(request);
    if (answer != Answer{0}) return answer;
    const auto size = static_cast<std::int64_t>(request.argument(1));
    if (size < 0 || !is_writable(request.file())) return fails(EINVAL);
    if (would_change_memory(request)) return {};
    if (auto* file = faked(request.facts, request.file())) {
        file->resize(static_cast<std::uint64_t>(size));
    }
    return answer;
}
inline constexpr const char* size_changes =
    "answered: success, unless known to be no file, or to be mapped; otherwise ends";
inline constexpr BurstRule accepts_resize{size_changes, resize_accepted};

inline MaybeAnswer allocate_accepted(Request& request) {
    const auto answer = accept_for_file(request);
    if (answer != Answer{0}) return answer;
    const auto offset = static_cast<std::int64_t>(request.argument(2));
    const auto length = static_cast<std::int64_t>(request.argument(3));
    if (offset < 0 || length <= 0) return fails(EINVAL);
    if (would_change_memory(request)) return {};
    if (auto* file = faked(request.facts, request.file())) {
        const auto end = static_cast<std::uint64_t>(offset) + static_cast<std::uint64_t>(length);
        constexpr int keep_size = 1;
        const auto mode = request.int_argument(1);
        const auto size = file->size();
        if (!size) return {};
        if (mode == 0 && end > *size) file->resize(end);
        if ((mode & ~keep_size) != 0) file->forget_contents();
    }
    return answer;
}
inline constexpr BurstRule accepts_allocation{size_changes, allocate_accepted};

inline MaybeAnswer accept_for_descriptor(Request& request) {
    if (request.file().kind == OpenFile::Kind::closed) return fails(EBADF);
    return Answer{0};
}
inline constexpr BurstRule descriptor_call_succeeds{"answered: success", accept_for_descriptor};

inline MaybeAnswer watch_accepted(Request& request) {
    switch (request.file(2).kind) {
        case OpenFile::Kind::withdrawn:
            return Answer{0};
        case OpenFile::Kind::file:
        case OpenFile::Kind::directory:
            return fails(EPERM);
        default:
            return {};
    }
}
inline constexpr BurstRule accepts_watch{
    "answered, if the watched descriptor is known; otherwise ends", watch_accepted};

// --- Descriptors, from what is known of them ---

inline MaybeAnswer close_known(Request& request) {
    const auto fd = request.int_argument(0);
    const auto kind = request.facts.descriptors.at(fd).kind;
    if (kind == OpenFile::Kind::unknown) return {};
    if (kind == OpenFile::Kind::closed) return fails(EBADF);
    request.facts.descriptors.close(fd);
    return Answer{0};
}
inline constexpr BurstRule closes_if_known{"answered, if the descriptor is known; otherwise ends",
                                           close_known};

// With what the sample changed.
inline std::optional<struct stat> status_as_seen(GuestFacts& facts, const OpenFile& file) {
    const auto& names = facts.faked.names;
    if (names.changed_directories.count(file.id) != 0) return {};
    if (const auto* changed = facts.faked.file(file.id)) return changed->status();
    if (!file.status) return {};
    return facts.faked.status_of(file.id, *file.status);
}

template <std::size_t buffer>
MaybeAnswer status_of_descriptor(Request& request) {
    const auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return fails(EBADF);
    const auto status = status_as_seen(request.facts, file);
    if (!status) return {};
    return request.memory.write_as(request.address(buffer), *status) ? Answer{0} : fails(EFAULT);
}
inline constexpr BurstRule tells_file_status{"answered, if known; otherwise ends",
                                             status_of_descriptor<1>};

// C libraries have made fstat of it: a descriptor and an empty path.
inline bool names_a_descriptor(Request& request) {
    if ((request.argument(3) & AT_EMPTY_PATH) == 0 || request.int_argument(0) < 0) return false;
    return request.is_null(1) || request.memory.read_as<char>(request.address(1)) == '\0';
}
inline MaybeAnswer status_at(Request& request) {
    if (!names_a_descriptor(request)) return {};
    return status_of_descriptor<2>(request);
}
inline constexpr BurstRule tells_file_status_at{
    "descriptor with AT_EMPTY_PATH: answered, if known; otherwise ends", status_at};

inline MaybeAnswer move_offset(Request& request) {
    auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return fails(EBADF);
    if (file.kind == OpenFile::Kind::withdrawn) {
        if (!has_no_offset(file)) return {};
        return fails(ESPIPE);
    }
    if (file.kind != OpenFile::Kind::file || !file.offset) return {};

    const auto distance = static_cast<std::int64_t>(request.argument(1));
    std::int64_t from = 0;
    switch (request.int_argument(2)) {
        case SEEK_SET:
            break;
        case SEEK_CUR:
            from = static_cast<std::int64_t>(*file.offset);
            break;
        case SEEK_END: {
            const auto status = status_as_seen(request.facts, file);
            if (!status) return {};
            from = status->st_size;
            break;
        }
        default:
            return {};
    }
    std::int64_t to = 0;
    if (__builtin_add_overflow(from, distance, &to) || to < 0) return fails(EINVAL);
    file.offset = static_cast<std::uint64_t>(to);
    return Answer{to};
}
inline constexpr BurstRule moves_own_offset{
    "answered for files of known offset, which the sample keeps as its own; otherwise ends",
    move_offset};

// Nothing if nobody knows.
inline std::optional<bool> is_locked_by_others(const OpenFile& file, struct flock wanted) {
    if (file.kind != OpenFile::Kind::file) return {};
    if (FakedNames::is_made_here(file.id)) return false;
    if (!file.contents) return {};
    if (wanted.l_whence == SEEK_CUR) {
        if (!file.offset) return {};
        wanted.l_start += static_cast<off_t>(*file.offset);
        wanted.l_whence = SEEK_SET;
    }
    return file.contents->is_locked_by_others(wanted);
}

inline MaybeAnswer set_lock(Request& request, const OpenFile& file) {
    const auto wanted = request.memory.read_as<struct flock>(request.address(2));
    if (!wanted) return fails(EFAULT);
    const bool is_for_writing = wanted->l_type == F_WRLCK;
    if (file.status_flags && wanted->l_type != F_UNLCK &&
        (*file.status_flags & O_ACCMODE) == (is_for_writing ? O_RDONLY : O_WRONLY)) {
        return fails(EBADF);
    }
    // A burst may guess.
    if (wanted->l_type == F_UNLCK || file.kind == OpenFile::Kind::unknown) return Answer{0};
    if (is_locked_by_others(file, *wanted) != false) return {};
    return Answer{0};
}

inline MaybeAnswer fcntl_known(Request& request) {
    auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return fails(EBADF);
    switch (request.int_argument(1)) {
        case F_GETFL:
            if (!file.status_flags) return {};
            return Answer{*file.status_flags};
        case F_SETFL: {
            if (!file.status_flags) return {};
            constexpr int changeable = O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME;
            file.status_flags =
                (*file.status_flags & ~changeable) | (request.int_argument(2) & changeable);
            return Answer{0};
        }
        case F_GETLK:
        case F_OFD_GETLK: {
            auto wanted = request.memory.read_as<struct flock>(request.address(2));
            if (!wanted) return fails(EFAULT);
            if (is_locked_by_others(file, *wanted) != false) return {};
            wanted->l_type = F_UNLCK;
            return request.memory.write_as(request.address(2), *wanted) ? Answer{0} : fails(EFAULT);
        }
        case F_SETLK:
        case F_SETLKW:
        case F_OFD_SETLK:
        case F_OFD_SETLKW:
            return set_lock(request, file);
        case F_SETOWN:
        case F_SETOWN_EX:
        case F_SETSIG:
            return Answer{0};
        default:
            return {};
    }
}
inline constexpr BurstRule fcntl_if_known{
    "F_GETFL, F_SETFL: answered from the sample's own flags, if known; owners: answered, "
    "success; locks: answered, if nobody else has one; otherwise ends",
    fcntl_known};

inline bool may_be_terminal(const struct stat& status) {
    constexpr unsigned memory_devices = 1;  // /dev/null and its like
    return S_ISCHR(status.st_mode) && major(status.st_rdev) != memory_devices;
}

inline MaybeAnswer ioctl_known(Request& request) {
    auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return fails(EBADF);
    constexpr int tcgets2 = static_cast<int>(0x802c542a);
    switch (request.int_argument(1)) {
        case TCGETS:
        case tcgets2:
        case TIOCGWINSZ:
        case TIOCGPGRP: {
            if (file.kind == OpenFile::Kind::unknown) return {};
            if (file.kind != OpenFile::Kind::withdrawn) return fails(ENOTTY);
            if (!file.status || may_be_terminal(*file.status)) return {};
            return fails(ENOTTY);
        }
        case FIONBIO: {
            if (!file.status_flags) return {};
            const auto on = request.memory.read_as<int>(request.address(2));
            if (!on) return fails(EFAULT);
            file.status_flags = (*file.status_flags & ~O_NONBLOCK) | (*on != 0 ? O_NONBLOCK : 0);
            return Answer{0};
        }
        default:
            return {};
    }
}
inline constexpr BurstRule ioctl_if_known{
    "terminal queries on what is known to be none: answered, ENOTTY; FIONBIO: kept in the sample's "
    "own flags; otherwise ends",
    ioctl_known};

// --- Memory ---

inline MaybeAnswer take_advice(Request& request) {
    switch (request.int_argument(2)) {
        case MADV_NORMAL:
        case MADV_RANDOM:
        case MADV_SEQUENTIAL:
        case MADV_WILLNEED:
        case MADV_HUGEPAGE:
        case MADV_NOHUGEPAGE:
        case MADV_MERGEABLE:
        case MADV_UNMERGEABLE:
        case MADV_DONTDUMP:
        case MADV_DODUMP:
        case MADV_COLD:
        case MADV_PAGEOUT:
        case MADV_FREE:
            return Answer{0};  // FREE may keep the contents as long as it likes
        default:
            return {};
    }
}
inline constexpr BurstRule takes_hints{
    "hints (WILLNEED, HUGEPAGE, FREE …): answered, success; otherwise ends", take_advice};

inline MaybeAnswer name_thread(Request& request) {
    if (request.int_argument(0) != PR_SET_NAME) return {};
    return request.memory.read_as<char>(request.address(1)) ? Answer{0} : fails(EFAULT);
}
inline constexpr BurstRule names_thread{"PR_SET_NAME: answered, success; otherwise ends",
                                        name_thread};

}  // namespace shadowprof::emu::rules
