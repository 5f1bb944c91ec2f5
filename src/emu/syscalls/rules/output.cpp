#include "emu/syscalls/rules/output.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

#include "emu/syscalls/rules/pieces.h"
#include "emu/syscalls/rules/seen_files.h"

namespace shadowprof::emu::rules {

namespace {

// Programs that walk stacks write from doubtful addresses to learn whether they are mapped.
bool is_readable(GuestMemory& memory, Address begin, std::uint64_t size) {
    return size == 0 ||
           (memory.read_as<std::byte>(begin) && memory.read_as<std::byte>(begin + (size - 1)));
}

// The pieces, to be written; nothing if only a part of them could be.
std::optional<Pieces> readable(GuestMemory& memory, Pieces pieces) {
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

std::optional<Pieces> buffer_to_write(Request& r) {
    return readable(r.memory, pieces_in_buffer(r.address(1), r.argument(2)));
}

std::optional<Pieces> array_to_write(Request& r) {
    return readable(r.memory, pieces_in_array(r.memory, r.address(1), r.argument(2)));
}

void write_to(FakedFile& file, std::uint64_t offset, GuestMemory& memory, const Pieces& pieces) {
    std::vector<std::byte> bytes;
    for (auto [begin, size] : pieces.pieces) {
        while (size > 0) {
            bytes.resize(std::min(size, most_bytes_at_once));
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

bool would_change_memory(Request& request) {
    if (!is_mapped(request.facts, request.file().id)) return false;
    request.why_no_answer = would_show_in_memory;
    return true;
}

MaybeAnswer accept(Request& request, const std::optional<Pieces>& pieces, std::int64_t offset) {
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

MaybeAnswer accept_at(Request& request, const std::optional<Pieces>& pieces) {
    const auto offset = static_cast<std::int64_t>(request.argument(3));
    if (offset < 0) return fails(EINVAL);
    if (has_no_offset(request.file())) return fails(ESPIPE);
    return accept(request, pieces, offset);
}

}  // namespace

MaybeAnswer write_accepted(Request& r) {
    return accept(r, buffer_to_write(r), own_offset);
}

MaybeAnswer pwrite_accepted(Request& r) {
    return accept_at(r, buffer_to_write(r));
}

MaybeAnswer writev_accepted(Request& r) {
    return accept(r, array_to_write(r), own_offset);
}

MaybeAnswer pwritev_accepted(Request& r) {
    return accept_at(r, array_to_write(r));
}

// Its flags may ask it not to wait, or to write elsewhere.
MaybeAnswer pwritev2_accepted(Request& r) {
    if (r.argument(5) != 0) return {};
    if (static_cast<std::int64_t>(r.argument(3)) == own_offset) return writev_accepted(r);
    return pwritev_accepted(r);
}

namespace {

std::optional<Pieces> message_to_send(GuestMemory& memory, Address at) {
    const auto message = memory.read_as<msghdr>(at);
    if (!message) return Pieces{{}, -EFAULT};
    return readable(memory,
                    pieces_in_array(memory, {reinterpret_cast<std::uint64_t>(message->msg_iov)},
                                    message->msg_iovlen));
}

MaybeAnswer accept_sending(Request& request, const std::optional<Pieces>& pieces) {
    const auto& file = request.file();
    const auto kind = file.kind;
    if (kind == OpenFile::Kind::file || kind == OpenFile::Kind::directory) return fails(ENOTSOCK);
    return accept(request, pieces, own_offset);
}

}  // namespace

MaybeAnswer sendto_accepted(Request& r) {
    return accept_sending(r, buffer_to_write(r));
}

MaybeAnswer sendmsg_accepted(Request& request) {
    return accept_sending(request, message_to_send(request.memory, request.address(1)));
}

MaybeAnswer sendmmsg_accepted(Request& request) {
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

// Only to a socket or pipe: the sample never sees the bytes again.
ReplicaAction send_file(Request& request) {
    const auto& out = request.file(0);
    auto& in = request.file(1);
    if (out.kind != OpenFile::Kind::withdrawn || in.kind != OpenFile::Kind::file) {
        return request.end();
    }
    const auto status = status_as_seen(request.facts, in);
    if (!status) return request.end();
    const bool moves = request.is_null(2);
    const auto from = moves ? in.offset : request.memory.read_as<std::uint64_t>(request.address(2));
    if (!from) return moves ? ReplicaAction{request.end()} : Answer{-EFAULT};
    const auto size = static_cast<std::uint64_t>(status->st_size);
    const auto sent = *from < size
                          ? std::min({request.argument(3), size - *from, most_bytes_a_call})
                          : std::uint64_t{0};
    if (moves) {
        *in.offset += sent;
    } else if (!request.memory.write_as(request.address(2), *from + sent)) {
        return Answer{-EFAULT};
    }
    return Answer{static_cast<std::int64_t>(sent)};
}

MaybeAnswer accept_for_file(Request& request) {
    const auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return fails(EBADF);
    if (file.kind == OpenFile::Kind::withdrawn) return {};
    return Answer{0};
}

MaybeAnswer accept_change_of_file(Request& request) {
    const auto answer = accept_for_file(request);
    if (auto* file = faked(request.facts, request.file()); file && answer == Answer{0}) {
        change_attributes(request, *file, 1);
    }
    return answer;
}

MaybeAnswer resize_accepted(Request& request) {
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

MaybeAnswer allocate_accepted(Request& request) {
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

MaybeAnswer accept_for_descriptor(Request& request) {
    if (request.file().kind == OpenFile::Kind::closed) return fails(EBADF);
    return Answer{0};
}

}  // namespace shadowprof::emu::rules
