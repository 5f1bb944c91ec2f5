#include "emu/syscalls/rules/reading.h"

#include <fcntl.h>
#include <sys/random.h>

#include <algorithm>

#include "emu/syscalls/rules/pieces.h"
#include "emu/syscalls/rules/seen_files.h"

namespace shadowprof::emu::rules {

namespace {

std::optional<std::int64_t> read_as_seen(Request& request, const OpenFile& file,
                                         std::uint64_t offset, std::span<std::byte> into) {
    if (request.facts.queries.is_mapped(file.id, Mapped::writable)) return {};
    if (request.facts.faked.file(file.id) != nullptr) {
        return faked(request.facts, file)->read(offset, into);
    }
    if (!file.contents) return {};
    return file.contents->read(offset, into);
}

ReplicaAction read_file_at(Request& request, const OpenFile& file, std::uint64_t offset,
                           const Pieces& pieces) {
    if (pieces.size < 0) return Answer{pieces.size};
    std::vector<std::byte> bytes;
    std::int64_t total = 0;
    for (auto [begin, size] : pieces.pieces) {
        while (size > 0) {
            bytes.resize(std::min(size, most_bytes_at_once));
            const auto got =
                read_as_seen(request, file, offset + static_cast<std::uint64_t>(total), bytes);
            if (!got) return request.end_because(bytes_unknown);
            if (*got <= 0) return Answer{total > 0 ? total : *got};
            const auto count = static_cast<std::uint64_t>(*got);
            if (!request.memory.write(begin, std::span{bytes}.first(count))) {
                return Answer{total > 0 ? total : -EFAULT};
            }
            total += *got;
            if (count < bytes.size()) return Answer{total};
            begin += count;
            size -= count;
        }
    }
    return Answer{total};
}

ReplicaAction read_plain_device(Request& request, PlainDevice device, const Pieces& pieces) {
    if (pieces.size < 0) return Answer{pieces.size};
    if (device == PlainDevice::null) return Answer{0};
    std::int64_t total = 0;
    for (const auto& [begin, size] : pieces.pieces) {
        if (size > most_bytes_at_once) return request.end();
        std::vector<std::byte> bytes(size);
        if (device == PlainDevice::random &&
            getrandom(bytes.data(), size, GRND_NONBLOCK) != static_cast<ssize_t>(size)) {
            return request.end();
        }
        if (!request.memory.write(begin, bytes)) return Answer{total > 0 ? total : -EFAULT};
        total += static_cast<std::int64_t>(size);
    }
    return Answer{total};
}

ReplicaAction read_at(Request& request, const Pieces& pieces, std::int64_t offset) {
    auto& file = request.file();
    if (file.kind == OpenFile::Kind::closed) return Answer{-EBADF};
    if (file.status_flags &&
        ((*file.status_flags & O_ACCMODE) == O_WRONLY || (*file.status_flags & O_PATH) != 0)) {
        return Answer{-EBADF};
    }
    if (file.kind == OpenFile::Kind::directory) return Answer{-EISDIR};
    if (const auto device = plain_device(file.status); device != PlainDevice::none) {
        return read_plain_device(request, device, pieces);
    }
    if (file.kind != OpenFile::Kind::file) return request.end();
    if (offset != own_offset) {
        return read_file_at(request, file, static_cast<std::uint64_t>(offset), pieces);
    }
    if (!file.offset) return request.end_because("at an offset that is not known");
    const auto action = read_file_at(request, file, *file.offset, pieces);
    if (const auto* answer = std::get_if<Answer>(&action); answer && answer->result > 0) {
        *file.offset += static_cast<std::uint64_t>(answer->result);
    }
    return action;
}

Pieces buffer_to_fill(Request& r) {
    return pieces_in_buffer(r.address(1), r.argument(2));
}

Pieces array_to_fill(Request& r) {
    return pieces_in_array(r.memory, r.address(1), r.argument(2));
}

ReplicaAction read_there(Request& r, const Pieces& pieces) {
    const auto offset = static_cast<std::int64_t>(r.argument(3));
    if (offset < 0) return Answer{-EINVAL};
    if (has_no_offset(r.file())) return Answer{-ESPIPE};
    return read_at(r, pieces, offset);
}

}  // namespace

ReplicaAction read_here(Request& r) {
    return read_at(r, buffer_to_fill(r), own_offset);
}

ReplicaAction readv_here(Request& r) {
    return read_at(r, array_to_fill(r), own_offset);
}

ReplicaAction pread_there(Request& r) {
    return read_there(r, buffer_to_fill(r));
}

ReplicaAction preadv_there(Request& r) {
    return read_there(r, array_to_fill(r));
}

// Its flags may ask it not to wait.
ReplicaAction preadv2_there(Request& r) {
    if (r.argument(5) != 0) return r.end();
    if (static_cast<std::int64_t>(r.argument(3)) == own_offset) return readv_here(r);
    return preadv_there(r);
}

}  // namespace shadowprof::emu::rules
