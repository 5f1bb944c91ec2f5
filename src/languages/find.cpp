#include "languages/find.h"

#include "languages/python/python.h"
#include "languages/ruby/ruby.h"

namespace shadowprof::languages {

std::unique_ptr<Interpreter> find_interpreter(pid_t pid, const proc::Maps& maps) {
    if (auto python = python::find(pid, maps)) return python;
    return ruby::find(pid, maps);
}

}  // namespace shadowprof::languages
