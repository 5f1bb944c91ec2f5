// Integer code to measure engines with: small, of known shape, without system calls.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace shadowprof::bench {

struct Kernel {
    const char* name;
    std::uint64_t (*run)(std::uint64_t rounds);
};

std::span<const Kernel> kernels();
const Kernel* find_kernel(std::string_view name);  // nullptr if there is none

}  // namespace shadowprof::bench
