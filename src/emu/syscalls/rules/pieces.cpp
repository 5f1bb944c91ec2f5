#include "emu/syscalls/rules/pieces.h"

#include <sys/uio.h>

#include <algorithm>

namespace shadowprof::emu::rules {

Pieces pieces_in_buffer(Address begin, std::uint64_t size) {
    size = std::min(size, most_bytes_a_call);
    return {{{begin, size}}, static_cast<std::int64_t>(size)};
}

Pieces pieces_in_array(GuestMemory& memory, Address array, std::uint64_t count) {
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

}  // namespace shadowprof::emu::rules
