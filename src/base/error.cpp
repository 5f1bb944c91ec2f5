#include "base/error.h"

#include <fmt/format.h>

namespace shadowprof {

void assertion_failed(const char* condition, const char* file, int line,
                      const std::string& context) {
    throw BrokenInvariant(
        fmt::format("broken invariant: {} ({}:{}): {}", condition, file, line, context));
}

}  // namespace shadowprof
