#include "emu/interpreter/spinning.h"

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "emu/interpreter/guest_blocks.h"
#include "emu/interpreter/guest_pages.h"
#include "emu/tuning.h"

namespace shadowprof::emu {

namespace {

// Remembers pieces of pages as they were at first.
class RememberedPages : public PageSource {
  public:
    explicit RememberedPages(PageSource& pages) : pages_(pages) {}

    Fetched fetch(Address page, std::byte* into, std::size_t begin, std::size_t end) override {
        const auto fetched = pages_.fetch(page, into, begin, end);
        if (fetched.is_all) begin = 0, end = page_size;
        if (fetched.writable) before_.try_emplace(page + begin, into + begin, into + end);
        return fetched;
    }

    bool are_unchanged_in(MemoryView& view) const {
        for (const auto& [at, before] : before_) {
            std::vector<std::byte> now(before.size());
            if (view.read(at, now) != now.size() || now != before) return false;
        }
        return true;
    }

  private:
    PageSource& pages_;
    std::map<Address, std::vector<std::byte>> before_;
};

class OwnPages : public PageSource {
  public:
    explicit OwnPages(GuestCode& code) : maps_(code.maps()), pages_(false) {
        pages_.use(code.memory(), maps_);
    }

    Fetched fetch(Address page, std::byte* into, std::size_t begin, std::size_t end) override {
        const auto* mapping = maps_ ? maps_->mapping_at(page) : nullptr;
        if (!mapping || mapping->shared) return {};
        return pages_.fetch(page, into, begin, end);
    }

  private:
    std::shared_ptr<const proc::Maps> maps_;
    GuestPages pages_;
};

bool are_equal(const GuestState& a, const GuestState& b) {
    return a.general == b.general && a.rip == b.rip && a.rflags == b.rflags &&
           a.fs_base == b.fs_base && a.gs_base == b.gs_base &&
           std::memcmp(a.extended.data(), b.extended.data(), a.extended.size()) == 0;
}

}  // namespace

bool spins_for_ever(GuestState state, PageSource& pages, BlockSource& blocks) {
    RememberedPages remembered{pages};
    MemoryView view{remembered};
    Interpreter interpreter{blocks};
    const auto begin = state.rip;
    const auto go_round = [&] {
        for (int n = 0; n < tuning::most_instructions_of_spinning; ++n) {
            if (interpreter.run(state, view, 1, nullptr).kind != StopKind::instructions)
                return false;
            if (state.rip == begin) return true;
        }
        return false;
    };
    // The second round begins with what the first one left, such as flags that nothing had set.
    if (!go_round()) return false;
    const auto once = state;
    return go_round() && are_equal(once, state) && remembered.are_unchanged_in(view);
}

bool spins_for_ever(GuestState state, GuestCode& code) {
    OwnPages pages{code};
    GuestBlocks blocks{code, GuestBlocks::Recorded::no};
    return spins_for_ever(std::move(state), pages, blocks);
}

}  // namespace shadowprof::emu
