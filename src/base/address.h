// base: the few words that every room shares: addresses, errors, time, random numbers. It must not
// know any other room.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/page.h"

namespace shadowprof {

// An address in the guest. It is a type of its own, and cannot be dereferenced, because the
// profiler's and the guest's memory hold different things at the same number.
struct Address {
    std::uint64_t value = 0;

    constexpr auto operator<=>(const Address&) const = default;
    constexpr Address operator+(std::uint64_t bytes) const { return {value + bytes}; }
    constexpr Address operator-(std::uint64_t bytes) const { return {value - bytes}; }
    constexpr std::uint64_t operator-(Address other) const { return value - other.value; }
    constexpr Address& operator+=(std::uint64_t bytes) {
        value += bytes;
        return *this;
    }
};

// Half-open.
struct AddressRange {
    Address begin;
    Address end;

    constexpr bool operator==(const AddressRange&) const = default;
    constexpr bool contains(Address a) const { return begin <= a && a < end; }
    constexpr std::uint64_t size() const { return end - begin; }
    constexpr bool empty() const { return !(begin < end); }
};

constexpr Address page_begin(Address a) {
    return {a.value & page_mask};
}
constexpr std::uint64_t page_number(Address a) {
    return a.value / page_size;
}

// Mixes all bits of a word into all bits of the result (the finaliser of splitmix64).
constexpr std::uint64_t mix_bits(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

constexpr std::uint64_t combine_hashes(std::uint64_t seed, std::uint64_t value) {
    return mix_bits(seed ^ mix_bits(value));
}

}  // namespace shadowprof

template <>
struct std::hash<shadowprof::Address> {
    std::size_t operator()(shadowprof::Address a) const noexcept {
        return shadowprof::mix_bits(a.value);
    }
};
