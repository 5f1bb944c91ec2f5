// A signal in a set of signals, as the kernel has them.
#pragma once

#include <cstdint>

namespace shadowprof {

constexpr std::uint64_t signal_bit(int signal) {
    return std::uint64_t{1} << (signal - 1);
}

}  // namespace shadowprof
