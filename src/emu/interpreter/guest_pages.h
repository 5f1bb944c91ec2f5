// Pages of a live process for a private view.
//
// Protection comes from the process's mappings, contents from its memory. The kernel does not let
// anybody read [vvar] of another process, so it is copied from our own: it is the same page if both
// processes are in one time namespace.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "emu/interpreter/memory_view.h"
#include "proc/maps.h"
#include "proc/memory.h"
#include "proc/page_map.h"

namespace shadowprof::emu {

class GuestPages : public PageSource {
  public:
    explicit GuestPages(bool shares_our_clocks);

    // Before a burst: the guest, and its mappings.
    void use(proc::Memory memory, std::shared_ptr<const proc::Maps> maps);

    Fetched fetch(Address page, std::byte* into, std::size_t begin, std::size_t end) override;

  private:
    bool may_have_to_wait_for(Address page, const proc::Mapping& mapping);
    bool fetch_clock_page(const proc::Mapping& mapping, Address at, std::byte* into) const;

    proc::Memory memory_{0};
    std::shared_ptr<const proc::Maps> maps_;
    std::optional<proc::PageMap> page_map_;   // of memory_
    std::optional<bool> serves_page_faults_;  // as of this burst, if it was asked
    std::vector<proc::Mapping> our_clock_pages_;
};

}  // namespace shadowprof::emu
