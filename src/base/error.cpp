#include "base/error.h"

#include <fmt/format.h>

#include <system_error>

namespace shadowprof {

std::string describe_error(const std::exception& error) {
    const auto* of_system = dynamic_cast<const std::system_error*>(&error);
    if (of_system && of_system->code() == std::errc::resource_unavailable_try_again)
        return "no thread can be created: raise the limit on processes (ulimit -u, or the "
               "container's) "
               "or on memory (ulimit -v)";
    // This needs no memory, for there may be none: std::bad_alloc keeps its text.
    return error.what();
}

void assertion_failed(const char* condition, const char* file, int line,
                      const std::string& context) {
    throw BrokenInvariant(
        fmt::format("broken invariant: {} ({}:{}): {}", condition, file, line, context));
}

}  // namespace shadowprof
