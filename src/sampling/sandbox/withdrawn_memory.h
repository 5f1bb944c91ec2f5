// Memory that a replica shares with the target and others, made harmless.
//
// A fork copies private memory only: memory that is mapped shared stays one memory. The replica may
// read it, but its writes must stay its own. So the pages are read-only from the fork on, and the
// first write to one, a fault, puts a private copy of the page in its place. Pages that the replica
// has not written to may change under it as the target goes on: preventing that would take a copy
// of everything at the fork, which could be gigabytes. Memory of devices may not even be read,
// because reading can have an effect, too. And memory that is mapped in two places cannot be
// written, because it would have to change in both.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"
#include "inject/replica.h"
#include "proc/maps.h"

namespace shadowprof::sampling {

class WithdrawnMemory {
  public:
    explicit WithdrawnMemory(inject::Replica& replica) : replica_(replica) {}

    // Withdraws the newborn's shared memory, but for `engine_memory`. False and `why` if that
    // failed.
    bool withdraw(const proc::Maps& maps, const std::vector<AddressRange>& engine_memory,
                  std::string& why);
    // All that is shared, writable at birth or not.
    const std::vector<AddressRange>& shared() const { return shared_; }
    const std::vector<AddressRange>& devices() const { return devices_; }

    // Something else is mapped there now, or the program itself has changed the protection.
    void forget(AddressRange range);
    // Makes pages writable again that were before: true if there were any, and it worked for all.
    bool make_writable(AddressRange range);
    // It did not work for some, because they are mapped elsewhere, too.
    bool has_refused() const { return has_refused_; }
    bool contains(Address address) const;

  private:
    struct Part {
        Address end;
        std::uint64_t protection = 0;  // before
        bool is_mapped_twice = false;  // somewhere else, too
    };
    std::map<std::uint64_t, Part>::const_iterator part_at(Address address) const;
    bool copy(AddressRange pages, std::uint64_t protection);
    bool copy_around(Address address);

    inject::Replica& replica_;
    bool has_refused_ = false;
    std::vector<AddressRange> shared_, devices_;
    std::map<std::uint64_t, Part> parts_;  // by where they begin
    // A replica that writes one page after the other gets more of them at a time.
    Address last_end_;
    std::uint64_t at_a_time_ = 1;
};

}  // namespace shadowprof::sampling
