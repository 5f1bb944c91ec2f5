#include "emu/translator/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace shadowprof::emu::translator {

namespace {

constexpr auto* no_room = "no room in its address space";

// Programs map more memory near what they have, so we keep out of their way: at least so far from
// their code and, if there is such a place, so far from everything else.
constexpr std::uint64_t distance_from_code = 256u << 20;
constexpr std::array<std::uint64_t, 3> margins{256u << 20, 64u << 20, 0};
constexpr std::uint64_t reach = 0x7000'0000;
constexpr std::uint64_t lowest_place = 0x1000'0000;

// The address space: where something is, or will be.
class Room {
  public:
    explicit Room(const proc::Maps& maps) {
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

// A place such that every address, those of the alias included, is below 2 GB. It is as high as
// possible, because the heap of a program that is linked to run below 2 GB grows towards it; and
// there is a gap around it if that is possible, so that what runs over the end of the program's own
// memory faults.
std::optional<std::uint64_t> place_for_data(const Room& room) {
    constexpr std::uint64_t step = 64u << 20;
    constexpr std::array<std::uint64_t, 2> gaps{16u << 20, 0};
    const auto is_free = [&](std::uint64_t place, std::uint64_t size, std::uint64_t gap) {
        return room.is_free(place - gap, size + 2 * gap);
    };
    for (const auto gap : gaps)
        for (auto place = (alias - data_size) & ~(step - 1); place >= lowest_place; place -= step)
            if (is_free(place, data_size, gap) &&
                is_free(place + streams_at + alias, streams_size, gap))
                return place;
    return {};
}

std::optional<std::uint64_t> place_near(const Room& room, std::uint64_t code) {
    constexpr std::uint64_t step = 16u << 20;
    code &= ~(step - 1);
    for (const auto margin : margins) {
        const auto is_free = [&](std::uint64_t place) {
            return room.is_free(place - margin, arena_size + 2 * margin);
        };
        for (auto away = distance_from_code; away + arena_size < reach; away += step) {
            const auto below = code - away - arena_size;
            if (code > away + arena_size + margin + lowest_place && is_free(below)) return below;
        }
        // The program's heap grows towards these.
        for (auto away = reach - arena_size; away >= distance_from_code; away -= step)
            if (is_free(code + away)) return code + away;
    }
    return {};
}

// A place where the whole file fits, far from programs and libraries.
std::optional<std::uint64_t> place_for_workshop(const Room& room, std::size_t size) {
    constexpr std::uint64_t step = std::uint64_t{1} << 32, end = std::uint64_t{1} << 46;
    for (auto place = std::uint64_t{1} << 44; place < end; place += step)
        if (room.is_free(place, size)) return place;
    return {};
}

// The program's code, and that which is farthest from it.
std::vector<std::uint64_t> neighbourhoods(const proc::Maps& maps) {
    std::vector<std::uint64_t> found;
    for (const auto& mapping : maps.mappings()) {
        if (!mapping.executable || mapping.path == "[vsyscall]") continue;
        const auto at = mapping.range.begin.value;
        if (found.empty() || at - found.back() > reach / 2) found.push_back(at);
    }
    return found;
}

// Carries out any number of calls. `returned` gets the index of each and its result.
template <typename Returned>
bool carry_out_all(ptrace::Tracer& tracer, ptrace::Thread& thread,
                   const std::vector<inject::PlannedCall>& calls, const Returned& returned,
                   std::string& why) {
    for (std::size_t begin = 0; begin < calls.size(); begin += inject::Plan::most_calls) {
        const auto end = std::min(begin + inject::Plan::most_calls, calls.size());
        inject::Plan plan;
        plan.calls.assign(calls.begin() + static_cast<std::ptrdiff_t>(begin),
                          calls.begin() + static_cast<std::ptrdiff_t>(end));
        const auto at_its_place = [&](std::size_t call, std::int64_t result) {
            returned(begin + call, result);
        };
        if (!inject::carry_out(tracer, thread, plan, at_its_place, why)) return false;
    }
    return true;
}

}  // namespace

std::unique_ptr<SharedMemory> SharedMemory::plan(const proc::Maps& maps, std::string& why) {
    Room room{maps};
    const auto data_place = place_for_data(room);
    why = no_room;
    if (!data_place) return nullptr;

    std::unique_ptr<SharedMemory> memory{new SharedMemory};
    memory->data_place_ = *data_place;
    room.take(*data_place, data_size);
    room.take(*data_place + streams_at + alias, streams_size);
    constexpr auto data = PROT_READ | PROT_WRITE, code = PROT_READ | PROT_EXEC;
    memory->pieces_ = {{*data_place, areas_at, 0, PROT_READ},
                       {*data_place + areas_at, data_size - areas_at, areas_at, data},
                       {*data_place + streams_at + alias, streams_size, streams_at, data}};
    memory->size_ = data_size;
    for (const auto neighbourhood : neighbourhoods(maps)) {
        if (memory->pieces_.size() == most_pieces) break;
        const auto place = place_near(room, neighbourhood);
        if (!place) continue;
        room.take(*place, arena_size);
        memory->pieces_.push_back({*place, arena_size, memory->size_, code});
        memory->size_ += arena_size;
    }
    if (memory->size_ == data_size) return nullptr;
    for (auto n = most_threads; n-- > 0;)
        memory->free_areas_.push_back(static_cast<std::uint32_t>(n));
    return memory;
}

bool SharedMemory::open(int file, std::uint64_t offset) {
    auto* const mapped =
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
    if (mapped == MAP_FAILED) return false;
    ours_ = static_cast<std::uint8_t*>(mapped);
    tables_.emplace(reinterpret_cast<std::uint64_t*>(ours_));
    for (const auto& piece : pieces_)
        if (piece.protection & PROT_EXEC)
            arenas_.push_back({ours_ + piece.offset, {piece.place}, piece.size});
    return true;
}

std::unique_ptr<SharedMemory> SharedMemory::create(ptrace::Tracer& tracer, ptrace::Thread& thread,
                                                   std::string& why) {
    const auto maps = proc::Maps::of(tracer.pid());
    why = "the process is gone";
    if (!maps) return nullptr;
    auto memory = plan(*maps, why);
    if (!memory) return nullptr;

    std::int64_t file = -1;
    std::string failure;
    const auto open_file = [&](std::size_t, std::int64_t result) {
        file = result;
        const int ours =
            ::open(fmt::format("/proc/{}/fd/{}", tracer.pid(), file).c_str(), O_RDWR | O_CLOEXEC);
        const bool fine = ours >= 0 && ftruncate(ours, static_cast<off_t>(memory->size_)) == 0 &&
                          fcntl(ours, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0 &&
                          memory->open(ours, 0);
        struct stat status {};
        if (fine && fstat(ours, &status) == 0) {
            memory->inode_ = status.st_ino;
            memory->exchange().sign = 1;
            memory->ours_[data_size - 1] = 1;
        }
        if (!fine)
            failure = fmt::format("shared memory: {}",
                                  std::strerror(file < 0 ? static_cast<int>(-file) : errno));
        if (ours >= 0) close(ours);
    };
    const inject::PlannedCall make_file{
        SYS_memfd_create, {inject::PlannedArgument::the_text(), MFD_CLOEXEC | MFD_ALLOW_SEALING}};
    if (!inject::carry_out(tracer, thread, {{make_file}, "shadowprof"}, open_file, why))
        return nullptr;

    std::vector<inject::PlannedCall> calls;
    if (failure.empty())
        for (const auto& piece : memory->pieces_)
            calls.push_back({SYS_mmap,
                             {piece.place, piece.size, static_cast<std::uint64_t>(piece.protection),
                              MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE,
                              static_cast<std::uint64_t>(file), piece.offset}});
    if (file >= 0) calls.push_back({SYS_close, {static_cast<std::uint64_t>(file)}});
    std::vector<Piece> mapped;
    const auto check = [&](std::size_t call, std::int64_t result) {
        if (calls[call].number != SYS_mmap) return;
        if (static_cast<std::uint64_t>(result) == memory->pieces_[call].place)
            mapped.push_back(memory->pieces_[call]);
        else
            failure = fmt::format("mmap: {}", std::strerror(static_cast<int>(-result)));
    };
    if (!carry_out_all(tracer, thread, calls, check, why)) return nullptr;
    if (!failure.empty()) {
        memory->pieces_ = mapped;
        memory->remove(tracer, thread);
        why = failure;
        return nullptr;
    }
    // Children that the program forks run in their own code and do not need it.
    calls.clear();
    for (const auto& piece : mapped)
        calls.push_back({SYS_madvise, {piece.place, piece.size, MADV_DONTFORK}});
    if (!carry_out_all(
            tracer, thread, calls, [](std::size_t, std::int64_t) {}, why))
        return nullptr;
    return memory;
}

// mremap with an old size of 0 duplicates a shared mapping, or any other part of its file. For a
// moment the whole file is mapped, in the workshop.
bool SharedMemory::map_into(inject::Replica& replica, const proc::Maps& maps, Address of_file,
                            std::uint64_t offset, std::string& why) const {
    const auto whole = offset + size_;
    Room room{maps};
    for (const auto& piece : pieces_) room.take(piece.place, piece.size);
    const auto workshop = place_for_workshop(room, whole);
    why = no_room;
    if (!workshop) return false;
    const auto failed = [&](const char* call, const std::optional<std::int64_t>& got) {
        why = fmt::format("{}: {}", call,
                          got ? std::strerror(static_cast<int>(-*got)) : "the replica is gone");
        return false;
    };
    const auto everything = replica.call(
        SYS_mremap, {of_file.value, 0, whole, MREMAP_MAYMOVE | MREMAP_FIXED, *workshop});
    if (!everything || *everything < 0) return failed("mremap", everything);
    const auto from = *workshop + offset;
    for (const auto& piece : pieces_) {
        const auto got = replica.call(SYS_mremap, {from + piece.offset, 0, piece.size,
                                                   MREMAP_MAYMOVE | MREMAP_FIXED, piece.place});
        if (!got || *got < 0) return failed("mremap", got);
        // The area's first page, which was duplicated, has code.
        if (piece.protection == (PROT_READ | PROT_EXEC)) continue;
        const auto set = replica.call(
            SYS_mprotect, {piece.place, piece.size, static_cast<std::uint64_t>(piece.protection)});
        if (!set || *set < 0) return failed("mprotect", set);
    }
    replica.call(SYS_munmap, {*workshop, whole});
    return true;
}

bool SharedMemory::has_room_in(const proc::Maps& maps) const {
    const Room room{maps};
    return std::all_of(pieces_.begin(), pieces_.end(),
                       [&](const Piece& piece) { return room.is_free(piece.place, piece.size); });
}

std::vector<AddressRange> SharedMemory::places() const {
    std::vector<AddressRange> places;
    for (const auto& piece : pieces_) places.push_back(piece.range());
    return places;
}

bool SharedMemory::Piece::is_in(const proc::Maps& maps, std::uint64_t inode) const {
    for (auto at = range().begin; at < range().end;) {
        const auto* const found = maps.mapping_at(at);
        if (found == nullptr || !found->shared || found->inode != inode ||
            found->file_offset + (at - found->range.begin) != offset + (at - range().begin) ||
            found->readable != ((protection & PROT_READ) != 0) ||
            found->writable != ((protection & PROT_WRITE) != 0) ||
            found->executable != ((protection & PROT_EXEC) != 0))
            return false;
        at = found->range.end;
    }
    return true;
}

bool SharedMemory::is_there(const proc::Maps& maps) const {
    return std::ranges::all_of(pieces_,
                               [&](const Piece& piece) { return piece.is_in(maps, inode_); });
}

// The tables are only read, and arenas begin with code.
constexpr std::size_t SharedMemory::word_of(std::size_t piece) {
    constexpr std::size_t data = 1, streams_again = 2;
    if (piece == data)
        return (exchange_at - areas_at + offsetof(Exchange, sign)) / sizeof(std::uint64_t);
    return piece == streams_again ? streams_size / sizeof(std::uint64_t) - 1 : 0;
}

// One word of each piece has the same value for them and for us, and can be written where that has
// to be possible. It is 0 if the program has given the pages back (MADV_REMOVE).
bool SharedMemory::is_there(pid_t thread) const {
    std::array<std::uint64_t, most_pieces> seen{};
    std::array<iovec, most_pieces> ours{}, theirs{};
    const auto value_of = [this](std::size_t n) {
        return reinterpret_cast<const std::uint64_t*>(ours_ + pieces_[n].offset) + word_of(n);
    };
    const auto count = pieces_.size();
    for (std::size_t n = 0; n < count; ++n) {
        ours[n] = {&seen[n], sizeof seen[n]};
        theirs[n] = {reinterpret_cast<void*>(pieces_[n].place + word_of(n) * sizeof seen[n]),
                     sizeof seen[n]};
    }
    const auto bytes = static_cast<ssize_t>(count * sizeof seen[0]);
    if (process_vm_readv(thread, ours.data(), count, theirs.data(), count, 0) != bytes)
        return false;
    for (std::size_t n = 0; n < count; ++n)
        if (seen[n] == 0 || seen[n] != *value_of(n)) return false;
    // The tables come first, and are only read.
    constexpr std::size_t first = 1, writable = 2;
    return process_vm_writev(thread, &ours[first], writable, &theirs[first], writable, 0) ==
           static_cast<ssize_t>(writable * sizeof seen[0]);
}

bool SharedMemory::is_changed_by(const ptrace::Registers& call) const {
    constexpr std::uint64_t x32 = 0x4000'0000;
    const auto& raw = call.raw;
    const auto concerns = [&](std::uint64_t begin, std::uint64_t size) {
        return std::ranges::any_of(pieces_, [&](const Piece& piece) {
            return piece.place < begin + size && begin < piece.place + piece.size;
        });
    };
    switch (raw.orig_rax & ~x32) {
        case SYS_munmap:
        case SYS_mprotect:
        case SYS_pkey_mprotect:
        case SYS_madvise:
        case SYS_remap_file_pages:
            return concerns(raw.rdi, raw.rsi);
        case SYS_mmap:
            return (raw.r10 & MAP_FIXED) != 0 && concerns(raw.rdi, raw.rsi);
        case SYS_mremap:
            return concerns(raw.rdi, raw.rsi) ||
                   ((raw.r10 & MREMAP_FIXED) != 0 && concerns(raw.r8, raw.rdx));
        case SYS_shmat:
            return (raw.rdx & SHM_REMAP) != 0;
        default:
            return false;
    }
}

SharedMemory::~SharedMemory() {
    if (ours_) munmap(ours_, size_);
}

bool SharedMemory::remove(ptrace::Tracer& tracer, ptrace::Thread& thread) {
    // Something of the program's may be in its place by now.
    const auto maps = proc::Maps::without_modules(tracer.pid());
    std::vector<inject::PlannedCall> calls;
    for (const auto& piece : pieces_)
        if (maps && piece.is_in(*maps, inode_))
            calls.push_back({SYS_munmap, {piece.place, piece.size}});
    std::string why;
    return carry_out_all(
        tracer, thread, calls, [](std::size_t, std::int64_t) {}, why);
}

void SharedMemory::put_registers(std::uint32_t number, const ptrace::Registers& native) {
    kept_[number] = {native.raw.gs_base, native.raw.eflags & alignment_check_flag};
    area(number).r15 = native.raw.r15;
    area(number).guest_gs = kept_[number].guest_gs;
    area(number).alignment_check = kept_[number].alignment_check;
}

std::optional<std::uint32_t> SharedMemory::take_area() {
    if (free_areas_.empty()) return {};
    const auto number = free_areas_.back();
    free_areas_.pop_back();
    return number;
}

}  // namespace shadowprof::emu::translator
