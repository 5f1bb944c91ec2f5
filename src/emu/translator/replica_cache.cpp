#include "emu/translator/replica_cache.h"

#include <utility>

namespace shadowprof::emu::translator {

ReplicaCache::ReplicaCache(pid_t target, trace::BlockTable& blocks, trace::ModuleTable& modules,
                           trace::SegmentTable& segments, trace::CapturePlan plan, bool keeps_code)
    : code_(target, blocks, modules, plan),
      segments_(segments),
      known_(modules, keeps_code),
      work_(code_, segments, known_) {}

std::unique_ptr<ReplicaCache::Guest> ReplicaCache::admit(inject::Replica& replica,
                                                         const inject::ForkSite& fork_site,
                                                         std::shared_ptr<const proc::Maps> maps,
                                                         std::string& why) {
    std::unique_lock lock{mutex_};
    const auto has_room = [&] { return memory_ && memory_->has_room_in(*maps); };
    changed_.wait(lock, [&] { return waiting_to_move_it_ == 0 || !has_room(); });
    if (!has_room()) {
        ++waiting_to_move_it_;
        changed_.wait(lock, [&] { return admitted_ == 0; });
        --waiting_to_move_it_;
        changed_.notify_all();
        if (!has_room() && !make(fork_site, *maps, why)) return nullptr;
    }
    const auto area = memory_->take_area();
    why = "too many replicas";
    if (!area) return nullptr;
    memory_->area(*area) = {};
    ++admitted_;
    std::unique_ptr<Guest> guest{new Guest{*this, replica.pid(), *area, std::move(maps)}};
    lock.unlock();
    if (!memory_->map_into(replica, *guest->maps_, fork_site.place().begin, offset_in_file, why))
        return nullptr;
    return guest;
}

bool ReplicaCache::make(const inject::ForkSite& fork_site, const proc::Maps& maps,
                        std::string& why) {
    hot_code_.reset();
    translator_.reset();
    memory_ = SharedMemory::plan(maps, why);
    if (!memory_) return false;
    if (!memory_->open(fork_site.file(), offset_in_file)) {
        memory_.reset();
        why = "no memory for the code cache";
        return false;
    }
    translator_ = std::make_unique<Translator>(code_, segments_, memory_->tables(),
                                               memory_->tables_place(), Asking::by_stops, &known_);
    for (const auto& arena : memory_->arenas())
        translator_->add_arena(arena.ours, arena.place, arena.size);
    hot_code_ = std::make_unique<HotCode>(*translator_, segments_);
    return true;
}

std::optional<std::uint32_t> ReplicaCache::add_area(Guest& guest) {
    const std::lock_guard lock{mutex_};
    const auto area = memory_->take_area();
    if (!area) return {};
    memory_->area(*area) = {};
    guest.more_areas_.push_back(*area);
    return area;
}

void ReplicaCache::give_area_back(Guest& guest, std::uint32_t area) {
    const std::lock_guard lock{mutex_};
    if (std::erase(guest.more_areas_, area) > 0) memory_->give_area(area);
}

ReplicaCache::Guest::~Guest() {
    cache_.leave(*this);
}

void ReplicaCache::leave(const Guest& guest) {
    const std::lock_guard lock{mutex_};
    memory_->give_area(guest.area_);
    for (const auto area : guest.more_areas_) memory_->give_area(area);
    --admitted_;
    changed_.notify_all();
}

void ReplicaCache::empty() {
    translator_->forget_everything();
    hot_code_->forget_everything();
    epoch_ = code_.epoch();
    must_be_emptied_ = false;
    ++emptied_;
    changed_.notify_all();
}

ReplicaCache::Turn::Turn(Guest& guest) : guest_(guest), lock_(guest.cache_.mutex_) {
    code().look_through(guest_.pid_, guest_.maps_);
}

ReplicaCache::Turn::~Turn() {
    guest_.maps_ = code().current_maps();
}

std::optional<Address> ReplicaCache::Turn::entry(Address pc, Version version) {
    // Replicas that have different libraries in one place empty the cache for each other in turns.
    constexpr int most_tries = 16;
    auto& cache = guest_.cache_;
    for (int tries = 1;; ++tries) {
        cache.must_be_emptied_ |= code().epoch() != cache.epoch_;
        if (cache.must_be_emptied_) wait_until_emptied();
        const auto place = translator().entry(pc, version);
        const bool is_current = code().epoch() == cache.epoch_ && !translator().is_full();
        if (is_current) return place;
        if (tries == most_tries) return {};
        cache.must_be_emptied_ = true;
    }
}

std::optional<Address> ReplicaCache::Turn::entry_beside_others(Address pc, Version version) {
    auto& cache = guest_.cache_;
    const auto place = translator().entry(pc, version);
    cache.must_be_emptied_ |= code().epoch() != cache.epoch_ || translator().is_full();
    return cache.must_be_emptied_ ? std::nullopt : place;
}

void ReplicaCache::Turn::wait_until_emptied() {
    auto& cache = guest_.cache_;
    const auto emptied = cache.emptied_;
    ++cache.waiting_;
    cache.changed_.notify_all();
    guest_.maps_ = code().current_maps();
    while (cache.emptied_ == emptied) {
        if (cache.waiting_ == cache.admitted_)
            cache.empty();
        else
            cache.changed_.wait(lock_);
    }
    --cache.waiting_;
    code().look_through(guest_.pid_, guest_.maps_);
    // While the cache is empty, it does not matter whose code it had before.
    if (translator().is_empty()) cache.epoch_ = code().epoch();
}

}  // namespace shadowprof::emu::translator
