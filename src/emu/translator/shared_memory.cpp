#include "emu/translator/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "ptrace/maps.h"

namespace shadowprof::emu::translator {

namespace {

constexpr std::size_t arena_size = 64u << 20;
// Programs map more near what they have; we keep out of the way.
constexpr std::uint64_t distance_from_code = 256u << 20;
constexpr std::uint64_t reach = 0x7000'0000;
constexpr std::uint64_t lowest_place = 0x1000'0000;

// Where something is, or will be.
class Room {
  public:
    explicit Room(const ptrace::Maps& maps) {
        for (const auto& mapping : maps.mappings()) taken_.push_back(mapping.range);
    }
    void take(std::uint64_t begin, std::uint64_t size) {
        taken_.push_back({{begin}, {begin + size}});
    }
    bool is_free(std::uint64_t begin, std::uint64_t size) const {
        return std::none_of(taken_.begin(), taken_.end(), [&](const AddressRange& range) {
            return range.begin.value < begin + size && begin < range.end.value;
        });
    }

  private:
    std::vector<AddressRange> taken_;
};

// Such that the alias, and every address, is below 2 GB.
std::optional<std::uint64_t> place_for_data(const Room& room) {
    for (auto place = lowest_place; place + data_size < alias; place += 64u << 20)
        if (room.is_free(place, data_size) &&
            room.is_free(place + streams_at + alias, streams_size))
            return place;
    return {};
}

std::optional<std::uint64_t> place_near(const Room& room, std::uint64_t code) {
    constexpr std::uint64_t step = 16u << 20;
    code &= ~(step - 1);
    for (auto away = distance_from_code; away + arena_size < reach; away += step) {
        if (code > away + arena_size + lowest_place &&
            room.is_free(code - away - arena_size, arena_size))
            return code - away - arena_size;
        if (room.is_free(code + away, arena_size)) return code + away;
    }
    return {};
}

// The program's code, and that which is farthest from it.
std::vector<std::uint64_t> neighbourhoods(const ptrace::Maps& maps) {
    std::vector<std::uint64_t> found;
    for (const auto& mapping : maps.mappings()) {
        if (!mapping.executable || mapping.path == "[vsyscall]") continue;
        const auto at = mapping.range.begin.value;
        if (found.empty() || at - found.back() > reach / 2) found.push_back(at);
    }
    return found;
}

}  // namespace

std::unique_ptr<SharedMemory> SharedMemory::create(ptrace::Tracer& tracer, ptrace::Thread& thread,
                                                   std::string& why) {
    ptrace::RemoteCalls calls{tracer, thread};
    const auto maps = ptrace::Maps::of(tracer.pid());
    why = "the process is gone";
    if (!maps) return nullptr;
    Room room{*maps};
    const auto data_place = place_for_data(room);
    why = "no room in its address space";
    if (!data_place) return nullptr;

    std::unique_ptr<SharedMemory> memory{new SharedMemory};
    memory->data_place_ = *data_place;
    room.take(*data_place, data_size);
    room.take(*data_place + streams_at + alias, streams_size);
    std::vector<std::uint64_t> places;
    for (const auto code : neighbourhoods(*maps)) {
        const auto place = place_near(room, code);
        if (!place) continue;
        places.push_back(*place);
        room.take(*place, arena_size);
    }
    if (places.empty()) return nullptr;
    memory->size_ = data_size + places.size() * arena_size;

    const auto descriptor = calls.call(SYS_memfd_create, {calls.empty_string().value, MFD_CLOEXEC});
    why = fmt::format("memfd_create: {}",
                      descriptor ? std::strerror(static_cast<int>(-*descriptor)) : "no vDSO");
    if (!descriptor || *descriptor < 0) return nullptr;
    const auto file = static_cast<std::uint64_t>(*descriptor);
    const int ours =
        open(fmt::format("/proc/{}/fd/{}", tracer.pid(), *descriptor).c_str(), O_RDWR | O_CLOEXEC);
    bool fine = ours >= 0 && ftruncate(ours, static_cast<off_t>(memory->size_)) == 0;
    if (fine) {
        auto* const mapped =
            mmap(nullptr, memory->size_, PROT_READ | PROT_WRITE, MAP_SHARED, ours, 0);
        fine = mapped != MAP_FAILED;
        if (fine) memory->ours_ = static_cast<std::uint8_t*>(mapped);
    }
    why = fmt::format("shared memory: {}", std::strerror(errno));
    if (ours >= 0) close(ours);

    // Children that the program forks run in their own code and do not need it.
    const auto map = [&](std::uint64_t place, std::size_t size, std::uint64_t offset,
                         std::uint64_t protection) {
        const auto got =
            calls.call(SYS_mmap, {place, size, protection,
                                  MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, file, offset});
        if (!got || static_cast<std::uint64_t>(*got) != place) {
            why = fmt::format("mmap: {}",
                              got ? std::strerror(static_cast<int>(-*got)) : "the thread is gone");
            return false;
        }
        calls.call(SYS_madvise, {place, size, MADV_DONTFORK});
        return true;
    };
    constexpr auto data = PROT_READ | PROT_WRITE, code = PROT_READ | PROT_EXEC;
    fine = fine && map(*data_place, data_size, 0, data) &&
           map(*data_place + streams_at + alias, streams_size, streams_at, data);
    auto offset = data_size;
    for (const auto place : places) {
        fine = fine && map(place, arena_size, offset, code);
        memory->arenas_.push_back({memory->ours_ + offset, {place}, arena_size});
        offset += arena_size;
    }
    calls.call(SYS_close, {file});
    if (!fine) {
        memory->remove(calls);
        return nullptr;
    }
    for (auto n = most_threads; n-- > 0;)
        memory->free_areas_.push_back(static_cast<std::uint32_t>(n));
    return memory;
}

SharedMemory::~SharedMemory() {
    if (ours_) munmap(ours_, size_);
}

void SharedMemory::remove(ptrace::RemoteCalls& calls) {
    calls.call(SYS_munmap, {data_place_, data_size});
    calls.call(SYS_munmap, {data_place_ + streams_at + alias, streams_size});
    for (const auto& arena : arenas_) calls.call(SYS_munmap, {arena.place.value, arena.size});
}

std::optional<std::uint32_t> SharedMemory::take_area() {
    if (free_areas_.empty()) return {};
    const auto number = free_areas_.back();
    free_areas_.pop_back();
    return number;
}

}  // namespace shadowprof::emu::translator
