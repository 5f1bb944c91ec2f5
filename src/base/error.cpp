#include "base/error.h"

namespace shadowprof {

void assertion_failed(const char* condition, const char* file, int line,
                      const std::string& context) {
    throw BrokenInvariant("broken invariant: " + std::string{condition} + " (" + file + ":" +
                          std::to_string(line) + "): " + context);
}

}  // namespace shadowprof
