// Finds the interpreter in a process, if it is one whose structures are known.
#pragma once

#include <sys/types.h>

#include <memory>

#include "languages/interpreter.h"
#include "proc/maps.h"

namespace shadowprof::languages {

// nullptr: there is none, or none yet.
std::unique_ptr<Interpreter> find_interpreter(pid_t pid, const proc::Maps& maps);

}  // namespace shadowprof::languages
