// Threads that are good to have, but not needed. A limit on processes, as containers have, may
// forbid one more; then its work is done in another way, or not at all.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

namespace shadowprof {

// The thread is not joinable if it could not be created.
template <class Work>
std::thread thread_if_any(Work work) {
    try {
        return std::thread{std::move(work)};
    } catch (const std::system_error&) {
        return {};
    }
}

}  // namespace shadowprof
