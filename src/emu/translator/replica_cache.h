// The code cache that all replicas of a program share, so that code is translated once for all.
//
// Replicas run at the same time, each held by a thread of its own. They make their requests to the
// cache one after the other, holding its lock. Code that is a fixed part of an image is the same in
// all replicas and is shared; code made at run time may differ from one to the next, and is
// compared whenever it is entered.
//
// When the cache is full, or code that it knows was replaced by other code, it is emptied. Nobody
// may be inside then, so each replica waits at the next place where it asks for something.
//
// The cache has the same places in all replicas. When the program has mapped memory there, the
// cache moves: the first replica with such memory waits until the others are gone, and those that
// come after it wait for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "emu/common/guest_code.h"
#include "emu/translator/hot_code.h"
#include "emu/translator/shared_memory.h"
#include "emu/translator/threads/segment_work.h"
#include "emu/translator/translator.h"
#include "inject/fork_site.h"
#include "inject/replica.h"
#include "trace/segment.h"

namespace shadowprof::emu::translator {

class ReplicaCache {
  public:
    ReplicaCache(pid_t target, trace::BlockTable& blocks, trace::ModuleTable& modules,
                 trace::SegmentTable& segments, trace::CapturePlan plan, bool keeps_code);
    ~ReplicaCache() { known_.keep(); }

    // The beginning of the file is the fork site's; what comes after it is ours.
    static constexpr std::uint64_t offset_in_file = 1u << 20;
    static constexpr std::size_t file_size = offset_in_file + SharedMemory::largest_size;

    // A replica's place in the cache.
    class Guest {
      public:
        ~Guest();
        Guest(const Guest&) = delete;
        Guest& operator=(const Guest&) = delete;

      private:
        friend class ReplicaCache;
        Guest(ReplicaCache& cache, pid_t pid, std::uint32_t area,
              std::shared_ptr<const proc::Maps> maps)
            : cache_(cache), pid_(pid), area_(area), maps_(std::move(maps)) {}

        ReplicaCache& cache_;
        pid_t pid_;
        std::uint32_t area_;
        std::vector<std::uint32_t> more_areas_;
        std::shared_ptr<const proc::Maps> maps_;  // null: they must be read
    };
    // Maps the cache into a replica. Nothing and `why` if there is no place for it.
    std::unique_ptr<Guest> admit(inject::Replica& replica, const inject::ForkSite& fork_site,
                                 std::shared_ptr<const proc::Maps> maps, std::string& why);

    // For one more thread of the replica. Nothing if there are too many.
    std::optional<std::uint32_t> add_area(Guest& guest);
    void give_area_back(Guest& guest, std::uint32_t area);

    // The cache in one replica's hands, for as long as this lives.
    class Turn {
      public:
        explicit Turn(Guest& guest);
        ~Turn();
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

        // Where the replica, which is outside, enters; nothing if there is no code at `pc`. May
        // wait for the cache to be emptied.
        std::optional<Address> entry(Address pc, Version version);
        // The same for one of several threads, while others are inside. Nothing also if the cache
        // must be emptied.
        std::optional<Address> entry_beside_others(Address pc, Version version);
        Translator& translator() { return *guest_.cache_.translator_; }
        bool must_be_emptied() const { return guest_.cache_.must_be_emptied_; }
        HotCode& hot_code() { return *guest_.cache_.hot_code_; }
        GuestCode& code() { return guest_.cache_.code_; }
        void mappings_may_have_changed() { code().mappings_may_have_changed(); }

      private:
        void wait_until_emptied();

        Guest& guest_;
        std::unique_lock<std::mutex> lock_;
    };

    SharedMemory& memory() { return *memory_; }
    ThreadArea read_area(const Guest& guest) const { return memory_->read_area(guest.area_); }
    std::uint32_t area_number(const Guest& guest) const { return guest.area_; }
    std::vector<AddressRange> places() const { return memory_->places(); }
    bool contains(Address address) const { return translator_->is_in_cache(address); }
    GuestCode& code() { return code_; }
    trace::SegmentTable& segments() { return segments_; }
    SegmentWork& work() { return work_; }  // only during a Turn

  private:
    bool make(const inject::ForkSite& fork_site, const proc::Maps& maps, std::string& why);
    void leave(const Guest& guest);
    void empty();

    GuestCode code_;
    trace::SegmentTable& segments_;
    KnownCode known_;
    std::unique_ptr<SharedMemory> memory_;
    std::unique_ptr<Translator> translator_;
    std::unique_ptr<HotCode> hot_code_;
    SegmentWork work_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t admitted_ = 0;
    std::size_t waiting_ = 0;             // replicas inside that wait for it to be emptied
    std::size_t waiting_to_move_it_ = 0;  // replicas outside that wait for it to be moved
    std::uint64_t emptied_ = 0;
    bool must_be_emptied_ = false;
    std::uint64_t epoch_ = 0;
};

}  // namespace shadowprof::emu::translator
