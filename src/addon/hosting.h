// The module's end: loads it and does for it what the interface promises, in the process that
// belongs to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "addon/worker.h"

namespace shadowprof::addon {

// Until the socket is closed. Each step that the module gets on is counted.
[[noreturn]] void host_module(const std::string& file, const std::string& arguments, int socket,
                              std::atomic<std::uint64_t>& steps);

// What such a process has found, as it sends it. Throws BadMessage if it contradicts itself.
Found read_found(std::string_view bytes);

}  // namespace shadowprof::addon
