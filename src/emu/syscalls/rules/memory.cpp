#include "emu/syscalls/rules/memory.h"

#include <linux/mman.h>
#include <sys/mman.h>

#include <algorithm>

#include "emu/syscalls/rules/seen_files.h"

namespace shadowprof::emu::rules {

namespace {

bool overlaps(const std::vector<AddressRange>& ranges, Address begin, std::uint64_t size) {
    const Address end{round_up_to_page(begin.value + size)};
    return std::any_of(ranges.begin(), ranges.end(), [&](const AddressRange& range) {
        return range.begin < end && begin < range.end;
    });
}

bool is_ours(const Request& request, std::size_t address, std::uint64_t size) {
    const auto at = request.address(address);
    const auto scratch = request.facts.queries.scratch();
    return overlaps(request.facts.engine_memory, at, size) ||
           (scratch && overlaps({*scratch}, at, size));
}

bool is_shared(const Request& request, std::size_t address, std::uint64_t size) {
    return overlaps(request.facts.shared_mappings, request.address(address), size);
}

}  // namespace

bool is_ours(const Request& request) {
    return is_ours(request, 0, request.argument(1));
}

bool is_shared(const Request& request) {
    return is_shared(request, 0, request.argument(1));
}

MaybeAnswer take_advice(Request& request) {
    // MADV_FREE may keep the contents as long as it likes.
    return request.is_one_of(2, {MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED,
                                 MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_MERGEABLE, MADV_UNMERGEABLE,
                                 MADV_DONTDUMP, MADV_DODUMP, MADV_COLD, MADV_PAGEOUT, MADV_FREE})
               ? Answer{0}
               : MaybeAnswer{};
}

// A shared mapping of a file becomes a private one, which has the same bytes; writes stay here.
ReplicaAction map(Request& request) {
    auto arguments = request.call.arguments;
    const auto protection = request.argument(2);
    const auto flags = request.argument(3);
    const auto type = flags & MAP_TYPE;
    if ((flags & MAP_HUGETLB) != 0) return request.end();  // takes from a pool of the whole system
    const bool is_fixed = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
    if (is_fixed && is_ours(request)) return request.end();
    arguments[3] &= ~std::uint64_t{MAP_LOCKED};
    if ((flags & MAP_ANONYMOUS) != 0) return execute_with(request, arguments);

    const auto& file = request.file(4);
    if (file.kind == OpenFile::Kind::closed) return Answer{-EBADF};
    if (file.kind != OpenFile::Kind::file) return request.end();
    if (!file.is_held) return request.end_because("of a file that the replica does not hold");
    if (request.facts.faked.file(file.id) != nullptr) return request.end_because(shows_faked);
    if (request.facts.queries.is_mapped(file.id, Mapped::writable)) {
        return request.end_because("of a file that is mapped to be written");
    }
    // The program is ahead of its replica: bytes that it wrote since would be seen in memory.
    if (!file.contents || file.contents->has_changed()) return request.end_because(bytes_unknown);
    if (type == MAP_PRIVATE) return execute_with(request, arguments);
    if ((type != MAP_SHARED && type != MAP_SHARED_VALIDATE) || (flags & MAP_SYNC) != 0) {
        return request.end();
    }
    if ((protection & PROT_WRITE) != 0) {
        return Answer{-EACCES};  // the replica holds only files opened for reading
    }
    arguments[3] = (arguments[3] & ~std::uint64_t{MAP_TYPE}) | MAP_PRIVATE;
    return execute_with(request, arguments);
}

ReplicaAction advise(Request& request) {
    if (const auto answer = take_advice(request)) return *answer;
    if (is_shared(request) || is_ours(request)) return request.end();
    constexpr int guard_install = 102, guard_remove = 103;  // since Linux 6.13
    if (request.is_one_of(2, {MADV_DONTNEED, MADV_DONTNEED_LOCKED, MADV_DONTFORK, MADV_DOFORK,
                              MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_POPULATE_READ,
                              MADV_POPULATE_WRITE, guard_install, guard_remove}))
        return Execute{};
    return request.end();
}

// MS_ASYNC only checks whether the pages are mapped, and programs use it for that.
ReplicaAction synchronise_memory(Request& request) {
    if (request.int_argument(2) == MS_ASYNC) return Execute{};
    return Answer{0};
}

bool changes_only_private_protection(Request& request) {
    const bool opens_shared = (request.argument(2) & PROT_WRITE) != 0 && is_shared(request);
    const bool opens_device =
        overlaps(request.facts.device_memory, request.address(0), request.argument(1));
    return !opens_shared && !opens_device && !is_ours(request);
}

bool moves_only_private_memory(Request& request) {
    // An old size of 0 asks for a second mapping of shared pages.
    const auto size = std::max<std::uint64_t>(request.argument(1), 1);
    const bool to_fixed_place = (request.argument(3) & MREMAP_FIXED) != 0;
    return !is_ours(request, 0, size) && !is_shared(request, 0, size) &&
           !(to_fixed_place && is_ours(request, 4, request.argument(2)));
}

}  // namespace shadowprof::emu::rules
