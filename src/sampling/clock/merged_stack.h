// A stack of a program that an interpreter executes, as people read it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "languages/interpreter.h"
#include "proc/maps.h"
#include "trace/location.h"

namespace shadowprof::sampling {

// What is known of the interpreter in a process.
struct InterpreterFacts {
    std::string language;
    // As languages::Interpreter has them.
    std::vector<AddressRange> loop;
    bool has_native_functions = false;
};

// Innermost first. `machine`: an address, then return addresses; none if the stack is not known.
// Calls of the interpreter's loop give way to the functions that they execute, and what is around
// them to native functions, where the language has those. A stack that could
// not be unwound to its end ends with those that are left, further out.
std::vector<trace::Location> merge_stacks(std::span<const Address> machine,
                                          std::span<const languages::Frame> functions,
                                          const InterpreterFacts& interpreter,
                                          const proc::Maps* maps, trace::ModuleTable& modules);

}  // namespace shadowprof::sampling
