#include "sampling/sandbox/withdrawn_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>

namespace shadowprof::sampling {

namespace {

constexpr std::uint64_t huge_page_size = 2u << 20;
constexpr std::uint64_t most_pages_at_a_time = 16;

std::uint64_t protection_of(const proc::Mapping& mapping) {
    return static_cast<std::uint64_t>((mapping.readable ? PROT_READ : 0) |
                                      (mapping.writable ? PROT_WRITE : 0) |
                                      (mapping.executable ? PROT_EXEC : 0));
}

bool is_device(const proc::Mapping& mapping) {
    const auto& path = mapping.path;
    for (const char* ordinary : {"/dev/shm/", "/dev/zero", "/dev/hugepages/"}) {
        if (path.starts_with(ordinary)) return false;
    }
    // Files of /sys and /proc show a PCI device's memory.
    for (const char* special : {"/dev/", "/sys/", "/proc/", "anon_inode:"}) {
        if (path.starts_with(special)) return true;
    }
    return false;
}

// Private memory also shows what is written to the file, as long as nobody has written to that
// memory.
bool show_the_same(const proc::Mapping& one, const proc::Mapping& other) {
    return one.device == other.device && one.inode == other.inode &&
           one.file_offset < other.file_offset + other.range.size() &&
           other.file_offset < one.file_offset + one.range.size();
}

}  // namespace

bool WithdrawnMemory::withdraw(const proc::Maps& maps,
                               const std::vector<AddressRange>& engine_memory, std::string& why) {
    const auto is_ours = [&](const proc::Mapping& mapping) {
        return std::any_of(engine_memory.begin(), engine_memory.end(), [&](const auto& ours) {
            return ours.begin < mapping.range.end && mapping.range.begin < ours.end;
        });
    };
    for (const auto& mapping : maps.mappings()) {
        if (!mapping.shared || is_ours(mapping)) continue;
        shared_.push_back(mapping.range);
        const bool device = is_device(mapping);
        if (device) devices_.push_back(mapping.range);
        if (!mapping.writable && !device) continue;
        const auto protection = protection_of(mapping);
        const auto left = device ? std::uint64_t{PROT_NONE}
                                 : protection & ~static_cast<std::uint64_t>(PROT_WRITE);
        const auto result =
            replica_.call(SYS_mprotect, {mapping.range.begin.value, mapping.range.size(), left});
        if (result != 0) {
            why = "its shared memory cannot be write-protected";
            return false;
        }
        if (device) continue;
        const bool is_mapped_twice = std::any_of(
            maps.mappings().begin(), maps.mappings().end(),
            [&](const auto& other) { return &other != &mapping && show_the_same(mapping, other); });
        parts_[mapping.range.begin.value] = {mapping.range.end, protection, is_mapped_twice};
    }
    return true;
}

std::map<std::uint64_t, WithdrawnMemory::Part>::const_iterator WithdrawnMemory::part_at(
    Address address) const {
    auto part = parts_.upper_bound(address.value);
    if (part == parts_.begin()) return parts_.end();
    --part;
    return address < part->second.end ? part : parts_.end();
}

bool WithdrawnMemory::contains(Address address) const {
    return part_at(address) != parts_.end();
}

void WithdrawnMemory::forget(AddressRange range) {
    range = {page_begin(range.begin), {round_up_to_page(range.end.value)}};
    auto part = parts_.lower_bound(range.begin.value);
    if (part != parts_.begin() && range.begin < std::prev(part)->second.end) --part;
    while (part != parts_.end() && part->first < range.end.value) {
        const Address begin{part->first};
        auto left = part->second;
        part = parts_.erase(part);
        if (range.end < left.end) parts_[range.end.value] = left;
        left.end = range.begin;
        if (begin < range.begin) parts_[begin.value] = left;
    }
}

// The bytes are read first and written back afterwards; nothing of the program runs in between.
bool WithdrawnMemory::copy(AddressRange pages, std::uint64_t protection) {
    const inject::Replica::Standstill others{replica_};
    std::vector<std::byte> bytes(pages.size());
    if (replica_.memory().read(pages.begin, bytes) != bytes.size()) return false;
    const auto result =
        replica_.call(SYS_mmap, {pages.begin.value, pages.size(), protection | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, ~std::uint64_t{0}, 0});
    if (result != static_cast<std::int64_t>(pages.begin.value)) return false;
    if (!replica_.memory().write(pages.begin, bytes)) return false;
    forget(pages);
    return true;
}

bool WithdrawnMemory::copy_around(Address address) {
    const auto part = part_at(address);
    if (part == parts_.end()) return false;
    const AddressRange whole{{part->first}, part->second.end};
    if (part->second.is_mapped_twice) {
        has_refused_ = true;
        return false;
    }
    const auto protection = part->second.protection;
    const auto first = page_begin(address);
    at_a_time_ = first == last_end_ ? std::min(at_a_time_ * 2, most_pages_at_a_time) : 1;
    const AddressRange few{first, std::min(whole.end, first + at_a_time_ * page_size)};
    last_end_ = few.end;
    if (copy(few, protection)) return true;
    // Pages of hugetlbfs can only be replaced as a whole.
    const Address huge{address.value & ~(huge_page_size - 1)};
    if (huge < whole.begin || whole.end < huge + huge_page_size) return false;
    return copy({huge, huge + huge_page_size}, protection);
}

bool WithdrawnMemory::make_writable(AddressRange range) {
    bool any = false;
    for (auto page = page_begin(range.begin); page < range.end; page += page_size) {
        if (contains(page)) {
            if (!copy_around(page)) return false;
            any = true;
        }
    }
    return any;
}

}  // namespace shadowprof::sampling
