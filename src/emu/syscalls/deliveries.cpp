#include "emu/syscalls/deliveries.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "emu/syscalls/rules/pieces.h"

namespace shadowprof::emu {

namespace {

constexpr std::uint64_t most_bytes = 1u << 20;

class Ranges {
  public:
    Ranges(const SystemCall& call, GuestMemory& memory) : call_(call), memory_(memory) {}

    Ranges& add(std::size_t argument, std::uint64_t size) {
        return add(Address{call_.arguments.at(argument)}, size);
    }
    Ranges& add(Address at, std::uint64_t size) {
        if (at == Address{} || size == 0) return *this;
        bytes_ += size;
        ranges_.push_back({at, at + size});
        return *this;
    }
    // An address or an option, and its size, which the caller gave room for.
    Ranges& add_sized(std::size_t at, std::size_t size_at) {
        const Address place{call_.arguments.at(size_at)};
        if (call_.arguments.at(at) == 0 || place == Address{}) return *this;
        const auto size = memory_.read_as<std::uint32_t>(place);
        constexpr std::uint32_t largest = 4096;
        if (!size || *size > largest) {
            is_known_ = false;
            return *this;
        }
        return add(place, sizeof *size).add(at, *size);
    }
    Ranges& add_pieces(Address array, std::uint64_t count, std::uint64_t bytes) {
        const auto pieces = rules::pieces_in_array(memory_, array, count);
        if (pieces.size < 0) is_known_ = false;
        for (const auto& [begin, size] : pieces.pieces) {
            add(begin, std::min(size, bytes));
            bytes -= std::min(size, bytes);
        }
        return *this;
    }
    Ranges& add_message(std::size_t argument, std::uint64_t bytes) {
        const Address at{call_.arguments.at(argument)};
        const auto header = memory_.read_as<msghdr>(at);
        // Descriptors may have come with it.
        if (!header || header->msg_controllen != 0) {
            is_known_ = false;
            return *this;
        }
        const auto address_of = [](const void* pointer) {
            return Address{reinterpret_cast<std::uint64_t>(pointer)};
        };
        add(at, sizeof *header);
        if (header->msg_name != nullptr) add(address_of(header->msg_name), header->msg_namelen);
        return add_pieces(address_of(header->msg_iov), header->msg_iovlen, bytes);
    }
    std::optional<std::vector<AddressRange>> take() {
        if (!is_known_ || bytes_ > most_bytes) return {};
        return std::move(ranges_);
    }

  private:
    const SystemCall& call_;
    GuestMemory& memory_;
    std::vector<AddressRange> ranges_;
    std::uint64_t bytes_ = 0;
    bool is_known_ = true;
};

// False: it is not known what the call writes when it succeeds.
bool add_told(Ranges& ranges, const SystemCall& call, std::uint64_t count) {
    const auto& a = call.arguments;
    switch (call.number) {
        case SYS_read:
            ranges.add(1, std::min(count, a[2]));
            return true;
        case SYS_readv:
            ranges.add_pieces(Address{a[1]}, a[2], count);
            return true;
        case SYS_recvfrom:
            ranges.add(1, std::min(count, a[2])).add_sized(4, 5);
            return true;
        case SYS_recvmsg:
            ranges.add_message(1, count);
            return true;
        case SYS_epoll_wait:
        case SYS_epoll_pwait:
        case SYS_epoll_pwait2:
            ranges.add(1, count * sizeof(epoll_event));
            return true;
        case SYS_accept:
        case SYS_accept4:
        case SYS_getsockname:
        case SYS_getpeername:
            ranges.add_sized(1, 2);
            return true;
        case SYS_getsockopt:
            ranges.add_sized(3, 4);
            return true;
        case SYS_fstat:
            ranges.add(1, sizeof(struct stat));
            return true;
        case SYS_pipe:
        case SYS_pipe2:
            ranges.add(0, 2 * sizeof(int));
            return true;
        case SYS_socketpair:
            ranges.add(3, 2 * sizeof(int));
            return true;
        default:
            return false;
    }
}

}  // namespace

std::optional<std::vector<AddressRange>> delivered(const SystemCall& call, std::int64_t result,
                                                   GuestMemory& memory) {
    const auto& a = call.arguments;
    Ranges ranges{call, memory};
    const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(result, 0));
    switch (call.number) {
        case SYS_poll:
        case SYS_ppoll: {
            const auto room = static_cast<std::uint32_t>(a[1]);
            ranges.add(0, std::min<std::uint64_t>(room, most_bytes) * sizeof(pollfd));
            if (call.number == SYS_ppoll) ranges.add(2, sizeof(timespec));
            return ranges.take();
        }
        case SYS_select:
        case SYS_pselect6: {
            constexpr std::uint64_t bits = 64;
            const auto size = std::min<std::uint64_t>(a[0] & 0x7fff'ffff, 1u << 20) + bits - 1;
            for (std::size_t set = 1; set <= 3; ++set) ranges.add(set, size / bits * bits / 8);
            return ranges.add(4, sizeof(timespec)).take();
        }
        // Nothing but the result is told.
        case SYS_write:
        case SYS_writev:
        case SYS_sendto:
        case SYS_sendmsg:
        case SYS_epoll_ctl:
        case SYS_connect:
        case SYS_bind:
        case SYS_listen:
        case SYS_shutdown:
        case SYS_setsockopt:
        case SYS_socket:
        case SYS_epoll_create:
        case SYS_epoll_create1:
        case SYS_eventfd:
        case SYS_eventfd2:
        case SYS_timerfd_create:
        case SYS_semop:
        case SYS_semtimedop:
            return ranges.take();
        case SYS_fcntl: {
            const auto command = static_cast<int>(a[1]);
            if (command == F_GETFL || command == F_SETFL || command == F_GETFD ||
                command == F_SETFD)
                return ranges.take();
            return {};
        }
        case SYS_ioctl:
            if (a[1] == FIONREAD) return ranges.add(2, sizeof(int)).take();
            if (a[1] == FIONBIO) return ranges.take();
            return {};
        default:
            break;
    }
    // The rest writes only if it succeeds.
    if (!add_told(ranges, call, count)) return {};
    if (result < 0) return std::vector<AddressRange>{};
    return ranges.take();
}

std::vector<int> descriptors_made(const SystemCall& call, std::int64_t result,
                                  std::span<const std::byte> bytes) {
    if (result < 0) return {};
    switch (call.number) {
        case SYS_accept:
        case SYS_accept4:
        case SYS_socket:
        case SYS_epoll_create:
        case SYS_epoll_create1:
        case SYS_eventfd:
        case SYS_eventfd2:
        case SYS_timerfd_create:
            return {static_cast<int>(result)};
        case SYS_pipe:
        case SYS_pipe2:
        case SYS_socketpair: {
            std::vector<int> both(2);
            if (bytes.size() != both.size() * sizeof(int)) return {};
            std::memcpy(both.data(), bytes.data(), bytes.size());
            return both;
        }
        default:
            return {};
    }
}

std::optional<int> descriptor_of(const SystemCall& call) {
    switch (call.number) {
        case SYS_read:
        case SYS_readv:
        case SYS_write:
        case SYS_writev:
        case SYS_fstat:
        case SYS_fcntl:
        case SYS_ioctl:
            return static_cast<int>(call.arguments[0]);
        default:
            return {};
    }
}

bool brings_input(const SystemCall& call) {
    switch (call.number) {
        case SYS_read:
        case SYS_readv:
        case SYS_recvfrom:
        case SYS_recvmsg:
        case SYS_accept:
        case SYS_accept4:
        case SYS_poll:
        case SYS_ppoll:
        case SYS_select:
        case SYS_pselect6:
        case SYS_epoll_wait:
        case SYS_epoll_pwait:
        case SYS_epoll_pwait2:
            return true;
        default:
            return false;
    }
}

bool is_answered_by_peers(const SystemCall& call) {
    switch (call.number) {
        case SYS_write:
        case SYS_writev:
        case SYS_sendto:
        case SYS_sendmsg:
        case SYS_sendfile:
        case SYS_epoll_ctl:
        case SYS_shutdown:
        case SYS_setsockopt:
            return true;
        default:
            return false;
    }
}

bool is_same_call(const SystemCall& one, const SystemCall& other) {
    const auto &a = one.arguments, &b = other.arguments;
    if (one.number != other.number || a[0] != b[0]) return false;
    switch (one.number) {
        case SYS_read:
        case SYS_readv:
        case SYS_recvfrom:
        case SYS_recvmsg:
        case SYS_getsockopt:
            return a[1] == b[1] && a[2] == b[2];
        case SYS_poll:
        case SYS_ppoll:
        case SYS_select:
        case SYS_pselect6:
        case SYS_epoll_wait:
        case SYS_epoll_pwait:
        case SYS_epoll_pwait2:
        case SYS_accept:
        case SYS_accept4:
        case SYS_getsockname:
        case SYS_getpeername:
        case SYS_fstat:
        case SYS_fcntl:
        case SYS_ioctl:
            return a[1] == b[1];
        default:
            return true;
    }
}

}  // namespace shadowprof::emu
