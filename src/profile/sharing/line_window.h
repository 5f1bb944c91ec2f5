// Which threads touched which bytes of which cache lines within one stretch of time, and what of
// that makes a line go from processor to processor.
//
// Within the stretch nothing is known of the order in which different threads did what. So what a
// thread did to a line counts as often as the line may have had to come back to it: no more often
// than it touched it, and no more often than others did what takes it away.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "base/x86.h"

namespace shadowprof::profile {

enum class Sharing : std::uint8_t {
    false_,  // of a line, not of any byte
    true_,   // of bytes
    lock,    // of bytes, by locked instructions on both sides
};

constexpr auto names_of(Sharing) {
    return std::array<std::pair<Sharing, std::string_view>, 3>{{
        {Sharing::false_, "false-sharing"},
        {Sharing::true_, "true-sharing"},
        {Sharing::lock, "lock-word"},
    }};
}

class LineWindow {
  public:
    struct Access {
        std::uint64_t address = 0;
        std::uint32_t bytes = 0;  // no more than a line
        std::uint32_t place = 0;  // the caller's number of the instruction
        bool writes = false, is_locked = false, is_on_stack = false;
    };
    struct Shared {
        Sharing kind{};
        std::uint32_t place = 0, other_place = 0;
        std::uint64_t address = 0, other_address = 0;  // the lowest bytes that each touched
        std::uint64_t count = 0;
        bool is_on_stack = false;
    };

    void add(std::uint32_t thread, const Access& access) {
        const auto line = access.address / cache_line;
        const auto in_line = access.address % cache_line;
        const auto here = std::min<std::uint64_t>(access.bytes, cache_line - in_line);
        touch(thread, access, line, bits(in_line, here));
        if (here < access.bytes) touch(thread, access, line + 1, bits(0, access.bytes - here));
    }
    bool empty() const { return touches_.empty(); }
    std::size_t size() const { return touches_.size(); }

    // Calls `use` with each Shared, and begins anew.
    template <class Use>
    void close(Use use) {
        lines_.for_each([&](std::uint64_t line, std::uint32_t first) {
            if (is_shared(first)) tell(line, first, use);
        });
        lines_.clear();
        touches_.clear();
    }

  private:
    // Of a line by one instruction of one thread.
    struct Touch {
        std::uint64_t bytes = 0;  // a bit each
        std::uint64_t count = 0;
        std::uint32_t thread = 0, place = 0;
        std::uint32_t next = 0;  // of the line, plus 1
        bool writes = false, is_locked = false, is_on_stack = false;
    };

    static std::uint64_t bits(std::uint64_t from, std::uint64_t count) {
        const auto all = ~std::uint64_t{0};
        return count == 0 ? 0 : (all >> (cache_line - count)) << from;
    }
    void touch(std::uint32_t thread, const Access& access, std::uint64_t line, std::uint64_t bytes);
    bool is_shared(std::uint32_t first) const;
    Shared shared_of(std::uint64_t line, std::uint32_t first, const Touch& touch) const;
    template <class Use>
    void tell(std::uint64_t line, std::uint32_t first, Use use) const {
        for (auto at = first; at != 0; at = touches_[at - 1].next) {
            const auto shared = shared_of(line, first, touches_[at - 1]);
            if (shared.count != 0) use(shared);
        }
    }

    FlatMap<std::uint32_t> lines_;  // the first touch of each, plus 1
    std::vector<Touch> touches_;
};

}  // namespace shadowprof::profile
