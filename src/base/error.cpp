#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace shadowprof {

void assertion_failed(const char* condition, const char* file, int line,
                      const std::string& context) {
    std::fprintf(stderr, "shadowprof: broken invariant: %s (%s:%d)\n  %s\n", condition, file, line,
                 context.c_str());
    std::abort();
}

}  // namespace shadowprof
