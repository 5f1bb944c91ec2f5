// A piece of the code cache: memory that we write and the target executes.
//
// Code in an arena reaches everything within 2 GB of it, so there is one arena near each
// neighbourhood of the guest's code: near the program, and near its libraries. A branch of the
// guest reaches no further either, so only units that follow an indirect branch lead from one arena
// to another.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/address.h"
#include "base/page.h"
#include "emu/translator/fixed_code.h"

namespace shadowprof::emu::translator {

class CodeArena {
  public:
    CodeArena(std::uint8_t* ours, Address place, std::size_t size)
        : ours_(ours), place_(place), size_(size), next_(ours), aside_(ours + size) {}

    AddressRange range() const { return {place_, place_ + size_}; }
    Address place_of(const std::uint8_t* code) const {
        return place_ + static_cast<std::uint64_t>(code - ours_);
    }
    std::uint8_t* at(Address place) const { return ours_ + (place - place_); }

    std::uint8_t* begin() const { return next_; }
    std::uint8_t* end() const { return aside_; }
    std::size_t room() const { return static_cast<std::size_t>(end() - next_); }
    // Room for code that is executed once at most. It is kept apart, at the arena's end, so that
    // code that is executed often lies close together.
    std::uint8_t* take_aside(std::size_t size) { return aside_ -= size; }
    // The pages that code was written into since this was last asked: in a row, and at the end.
    std::array<AddressRange, 2> take_new_pages() {
        const Address end{round_up_to_page(place_of(next_).value)};
        const auto aside = page_begin(place_of(aside_));
        const AddressRange in_a_row{in_use_.begin, std::max(in_use_.begin, end)};
        const AddressRange at_end{std::min(aside, in_use_.end), in_use_.end};
        in_use_ = {in_a_row.end, at_end.begin};
        return {in_a_row, at_end};
    }
    bool is_half_full() const { return room() < size_ / 2; }
    void commit(std::uint8_t* end_of_code) { next_ = end_of_code; }
    // What was written so far stays when the rest is forgotten.
    void keep() { kept_ = next_; }
    Address end_of_kept() const { return place_of(kept_); }
    void forget() {
        next_ = kept_;
        aside_ = ours_ + size_;
        units.clear();
    }

    // Whether code here can name the address relative to itself.
    bool reaches(Address address) const {
        constexpr std::int64_t reach = std::int64_t{0x7fff0000};
        const auto from_begin = static_cast<std::int64_t>(address - place_);
        const auto from_end = static_cast<std::int64_t>(address - (place_ + size_));
        return -reach < from_begin && from_begin < reach && -reach < from_end && from_end < reach;
    }

    FixedCode fixed;
    std::vector<std::uint32_t> units;  // the numbers of those whose code is here, in order

  private:
    std::uint8_t* ours_;
    Address place_;
    std::size_t size_;
    std::uint8_t* next_;
    std::uint8_t* aside_;
    std::uint8_t* kept_ = next_;
    AddressRange in_use_ = range();  // what lies between the pages that were asked for
};

// The target may be executing this code, so it is changed by one store within one cache line.
inline void set_jump(std::uint8_t* displacement, const std::uint8_t* target) {
    const auto distance = static_cast<std::int32_t>(target - (displacement + 4));
    auto* const word = reinterpret_cast<std::int32_t*>(displacement);
    __atomic_store_n(word, distance, __ATOMIC_RELEASE);
}

inline void set_word(std::uint8_t* place, std::uint64_t value) {
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(place), value, __ATOMIC_RELEASE);
}

}  // namespace shadowprof::emu::translator
