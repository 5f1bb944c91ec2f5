// What the clock under it all saw: where a thread was at one moment, and how much time that moment
// stands for. No thread is stopped for it, and nothing is seen but the place.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/location.h"

namespace shadowprof::profile {

// On a processor, in the program's code or in the kernel's on its behalf, or waiting, and for what.
enum class ThreadState : std::uint8_t {
    user,
    kernel,
    lock,
    wakeup,  // by another thread: a condition, a semaphore, work for a pool
    file,
    socket,
    pipe,
    events,  // of several files: poll, epoll …
    sleep,
    child,
    processor,  // all are taken
    other,
};

constexpr auto names_of(ThreadState) {
    return std::array<std::pair<ThreadState, std::string_view>, 12>{{
        {ThreadState::user, "user"},
        {ThreadState::kernel, "kernel"},
        {ThreadState::lock, "lock"},
        {ThreadState::wakeup, "wakeup"},
        {ThreadState::file, "file"},
        {ThreadState::socket, "socket"},
        {ThreadState::pipe, "pipe"},
        {ThreadState::events, "events"},
        {ThreadState::sleep, "sleep"},
        {ThreadState::child, "child"},
        {ThreadState::processor, "processor"},
        {ThreadState::other, "other"},
    }};
}

constexpr bool is_waiting(ThreadState state) {
    return state > ThreadState::kernel;
}

struct ClockLook {
    std::string thread;                // its name
    std::optional<ThreadState> state;  // if nothing: it had a processor
    std::string call;  // the system call, "fault or interrupt"; empty if none or not known
    std::uint64_t nanoseconds = 0;  // that it stands for, until then
    double at = 0;                  // seconds since the clock began
    // Innermost first; all but the first are return addresses. Empty if nothing is known.
    std::vector<trace::Location> stack;
};

}  // namespace shadowprof::profile
