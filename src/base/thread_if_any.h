// Threads that are good to have: there may be as many as there may be (a limit on processes, which
// containers have), and then what they would have done is done otherwise, or not.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

namespace shadowprof {

// Not joinable if there can be none.
template <class Work>
std::thread thread_if_any(Work work) {
    try {
        return std::thread{std::move(work)};
    } catch (const std::system_error&) {
        return {};
    }
}

}  // namespace shadowprof
