// The memory that translated code and the profiler share, mapped into both (layout.h says what is
// where), and what each thread of the target holds of it.
//
// The program can write there as well, whatever it likes and at any time. So what comes from there
// is copied once, and the copy is checked before anything is made of it: this class gives out
// copies, and of streams only what lies in the thread's own slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/translator/layout.h"
#include "inject/fork_conditions.h"
#include "inject/planned_calls.h"
#include "inject/replica.h"
#include "proc/maps.h"
#include "ptrace/registers.h"

namespace shadowprof::emu::translator {

// Why profiling of a thread, or a sample, ends.
using inject::program_wrote_into_it;
inline constexpr const char* program_took_it = "the program took shadowprof's memory away";

class SharedMemory {
    static constexpr std::size_t most_pieces = 7, most_arenas = 4;

  public:
    // Puts it into a stopped thread's process: data at a place below 2 GB, and arenas near the
    // program's code and near its libraries. Nothing and `why` if there is no room, or the kernel
    // refuses.
    static std::unique_ptr<SharedMemory> create(ptrace::Tracer& tracer, ptrace::Thread& thread,
                                                std::string& why);

    // The same for replicas, step by step. First: where it is to be.
    static std::unique_ptr<SharedMemory> plan(const proc::Maps& maps, std::string& why);
    // Second: in which part of a file.
    static constexpr std::size_t largest_size = data_size + most_arenas * arena_size;
    bool open(int file, std::uint64_t offset);
    // Third: into each replica, which has the beginning of that file at `of_file`.
    bool has_room_in(const proc::Maps& maps) const;
    bool map_into(inject::Replica& replica, const proc::Maps& maps, Address of_file,
                  std::uint64_t offset, std::string& why) const;
    std::vector<AddressRange> places() const;

    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    // Whether it is still in the program as it was put there, for this stopped thread. Programs can
    // unmap what they find in their list of mappings, and may put something else in its place.
    bool is_there(pid_t thread) const;
    bool is_there(const proc::Maps& maps) const;
    // Whether this system call, if it is made, changes that.
    bool is_changed_by(const ptrace::Registers& call) const;

    // Takes it out again; no thread is inside. False, and nothing was done, if this stopped thread
    // cannot do so at this moment.
    bool remove(ptrace::Tracer& tracer, ptrace::Thread& thread);

    struct Arena {
        std::uint8_t* ours;
        Address place;
        std::size_t size;
    };
    const std::vector<Arena>& arenas() const { return arenas_; }
    LookupTables& tables() { return *tables_; }
    std::uint32_t tables_place() const { return static_cast<std::uint32_t>(data_place_); }

    Exchange& exchange() const { return *reinterpret_cast<Exchange*>(ours_ + exchange_at); }
    std::uint32_t place_of_exchange() const {
        return static_cast<std::uint32_t>(data_place_ + exchange_at);
    }

    // How much of a slot there is for a stream that is not in parts.
    std::uint64_t stream_room() const { return stream_room_; }
    void is_for_bursts() { stream_room_ = window_room; }

    // A thread's area and slot; nothing if there are too many threads.
    std::optional<std::uint32_t> take_area();
    void give_area(std::uint32_t number) { free_areas_.push_back(number); }
    // To write to.
    ThreadArea& area(std::uint32_t number) const {
        return reinterpret_cast<ThreadArea*>(ours_ + areas_at)[number];
    }
    // What a thread wrote there, but for what only we write.
    ThreadArea read_area(std::uint32_t number) const {
        auto copy = copy_once(area(number));
        copy.guest_gs = kept_[number].guest_gs;
        copy.alignment_check = kept_[number].alignment_check;
        return copy;
    }
    // The thread is about to enter the cache with these registers.
    void put_registers(std::uint32_t number, const ptrace::Registers& native);
    std::uint64_t place_of_area(std::uint32_t number) const {
        return data_place_ + areas_at + number * sizeof(ThreadArea);
    }
    std::uint64_t place_of_slot(std::uint32_t number) const {
        return data_place_ + streams_at + number * slot_size;
    }
    std::uint64_t place_of_readings(std::uint32_t number) const {
        return place_of_slot(number) + readings_in_slot;
    }
    // To write to.
    LoadReading* readings(std::uint32_t number) const {
        return reinterpret_cast<LoadReading*>(slot(number) + readings_in_slot);
    }
    LoadReading read_reading(std::uint32_t number, std::size_t index) const {
        return copy_once(readings(number)[index]);
    }
    std::uint64_t place_of_part(std::uint32_t number, std::size_t part) const {
        return data_place_ + stream_parts_at + number * parts_of_thread + part * sizeof(StreamPart);
    }
    // To write to.
    StreamPart& part(std::uint32_t number, std::size_t part) const {
        return reinterpret_cast<StreamPart*>(ours_ + stream_parts_at +
                                             number * parts_of_thread)[part];
    }
    StreamPart read_part(std::uint32_t number, std::size_t index) const {
        return copy_once(part(number, index));
    }
    // Appends a copy of what a thread wrote into its slot. False, and nothing was done, if that is
    // not a part of its slot, or no whole number of `T`s.
    template <typename T>
    bool read_stream(std::uint32_t number, std::uint64_t begin, std::uint64_t end,
                     std::vector<T>& append_to) const {
        const auto first = begin - place_of_slot(number), last = end - place_of_slot(number);
        if (first > last || last > readings_in_slot || (last - first) % sizeof(T) != 0)
            return false;
        const auto before = append_to.size();
        append_to.resize(before + (last - first) / sizeof(T));
        std::memcpy(append_to.data() + before, slot(number) + first, last - first);
        nothing_is_read_again();
        return true;
    }

  private:
    // The compiler may not assume that what was copied is still there.
    static void nothing_is_read_again() { asm volatile("" : : : "memory"); }
    template <typename T>
    static T copy_once(const T& theirs) {
        T copy;
        std::memcpy(&copy, &theirs, sizeof copy);
        nothing_is_read_again();
        return copy;
    }
    std::uint8_t* slot(std::uint32_t number) const {
        return ours_ + streams_at + number * slot_size;
    }

    // A part of the address space, and the part of the file that is there.
    struct Piece {
        std::uint64_t place;
        std::size_t size;
        std::uint64_t offset;
        int protection;

        AddressRange range() const { return {{place}, {place + size}}; }
        bool is_in(const proc::Maps& maps, std::uint64_t inode) const;
    };
    SharedMemory() = default;
    // In each piece, the number of a word that is not 0.
    static constexpr std::size_t word_of(std::size_t piece);

    std::uint8_t* ours_ = nullptr;
    std::optional<LookupTables> tables_;
    std::size_t size_ = 0;
    std::uint64_t inode_ = 0;
    std::uint64_t data_place_ = 0, stream_room_ = slot_room;
    std::vector<Piece> pieces_;
    std::vector<Arena> arenas_;
    std::vector<std::uint32_t> free_areas_;
    // Of each area, what only we write.
    struct Kept {
        std::uint64_t guest_gs = 0, alignment_check = 0;
    };
    std::vector<Kept> kept_ = std::vector<Kept>(most_threads);
};

}  // namespace shadowprof::emu::translator
