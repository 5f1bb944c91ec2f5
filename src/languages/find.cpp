#include "languages/find.h"

#include "languages/python/python.h"

namespace shadowprof::languages {

std::unique_ptr<Interpreter> find_interpreter(pid_t pid, const proc::Maps& maps) {
    return python::find(pid, maps);
}

}  // namespace shadowprof::languages
