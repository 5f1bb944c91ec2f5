// The memory that translated code and the profiler share, mapped into both (layout.h says what is
// where), and what each thread of the target holds of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/translator/layout.h"
#include "inject/planned_calls.h"
#include "inject/replica.h"
#include "proc/maps.h"

namespace shadowprof::emu::translator {

class SharedMemory {
    static constexpr std::size_t most_pieces = 6;

  public:
    // Puts it into a stopped thread's process: data at a place below 2 GB, and arenas near the
    // program's code and near its libraries. Nothing and `why` if there is no room, or the kernel
    // refuses.
    static std::unique_ptr<SharedMemory> create(ptrace::Tracer& tracer, ptrace::Thread& thread,
                                                std::string& why);

    // The same for replicas, step by step. First: where it is to be.
    static std::unique_ptr<SharedMemory> plan(const proc::Maps& maps, std::string& why);
    // Second: in which part of a file.
    static constexpr std::size_t largest_size = data_size + (most_pieces - 2) * arena_size;
    bool open(int file, std::uint64_t offset);
    // Third: into each replica, which has the beginning of that file at `of_file`.
    bool has_room_in(const proc::Maps& maps) const;
    bool map_into(inject::Replica& replica, const proc::Maps& maps, Address of_file,
                  std::uint64_t offset, std::string& why) const;
    std::vector<AddressRange> places() const;

    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    // Takes it out again; no thread is inside. False, and nothing was done, if this stopped thread
    // cannot do so at this moment.
    bool remove(ptrace::Tracer& tracer, ptrace::Thread& thread);

    struct Arena {
        std::uint8_t* ours;
        Address place;
        std::size_t size;
    };
    const std::vector<Arena>& arenas() const { return arenas_; }
    std::uint64_t* tables() const { return reinterpret_cast<std::uint64_t*>(ours_); }
    std::uint32_t tables_place() const { return static_cast<std::uint32_t>(data_place_); }

    Exchange& exchange() const { return *reinterpret_cast<Exchange*>(ours_ + exchange_at); }
    std::uint32_t place_of_exchange() const {
        return static_cast<std::uint32_t>(data_place_ + exchange_at);
    }

    // A thread's area and slot; nothing if there are too many threads.
    std::optional<std::uint32_t> take_area();
    void give_area(std::uint32_t number) { free_areas_.push_back(number); }
    ThreadArea& area(std::uint32_t number) const {
        return reinterpret_cast<ThreadArea*>(ours_ + areas_at)[number];
    }
    std::uint64_t place_of_area(std::uint32_t number) const {
        return data_place_ + areas_at + number * sizeof(ThreadArea);
    }
    std::uint64_t place_of_slot(std::uint32_t number) const {
        return data_place_ + streams_at + number * slot_size;
    }
    std::uint64_t place_of_readings(std::uint32_t number) const {
        return place_of_slot(number) + readings_in_slot;
    }
    LoadReading* readings(std::uint32_t number) const {
        return reinterpret_cast<LoadReading*>(ours_ + streams_at + number * slot_size +
                                              readings_in_slot);
    }
    // What is at a stream pointer of the target, aliased or not.
    const std::byte* stream_at(std::uint64_t pointer) const {
        return reinterpret_cast<const std::byte*>(ours_ + ((pointer & ~alias) - data_place_));
    }

  private:
    // A part of the address space, and the part of the file that is there.
    struct Piece {
        std::uint64_t place;
        std::size_t size;
        std::uint64_t offset;
        int protection;
    };
    SharedMemory() = default;

    std::uint8_t* ours_ = nullptr;
    std::size_t size_ = 0;
    std::uint64_t data_place_ = 0;
    std::vector<Piece> pieces_;
    std::vector<Arena> arenas_;
    std::vector<std::uint32_t> free_areas_;
};

}  // namespace shadowprof::emu::translator
