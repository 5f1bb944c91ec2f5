// languages: which functions of its own language a program's interpreter is in the middle of, read
// from the interpreter's structures in the program's memory. The room knows processes, their
// memory and nothing of profiling. All that it reads may be damaged or hostile: it is checked
// before it is believed, and what fails a check yields nothing.
//
// This file: what all languages have in common. A language is a folder, and a line in find.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"

namespace shadowprof::languages {

struct Function {
    std::string name, file;
    std::uint32_t first_line = 0;
};

// A function that a thread is in, and where.
struct Frame {
    std::shared_ptr<const Function> function;
    std::uint32_t line = 0;
    // The interpreter executes functions that call each other in one call of its loop, a function
    // of machine code. This is the outermost of those.
    bool is_outermost_of_loop = false;
};

// The same as one quick look shows it: what only addresses tell is found out later.
struct Glance {
    struct Frame {
        Address function;
        Address owner = {};          // what its name depends on besides, if there is such a thing
        std::uint64_t contents = 0;  // of these objects: a hash, so that they are known again
        std::int64_t position = 0;   // in its code; what that means is the language's business
        bool is_outermost_of_loop = false;
    };
    std::vector<Frame> frames;  // innermost first
};

// One thread of a program, as its interpreter knows it.
class InterpretedThread {
  public:
    virtual ~InterpretedThread() = default;
    // While the thread does not run. No frames: it executes none of the language's functions.
    // Nothing: its structures are damaged, or about to change.
    virtual std::optional<Glance> look() = 0;
};

class Interpreter {
  public:
    virtual ~Interpreter() = default;

    // "python": what places in its functions are listed under.
    virtual std::string_view language() const = 0;
    // Its loop, where machine code executes functions: one call of it is in the stack as one call
    // of each of these, the innermost first.
    virtual std::vector<AddressRange> loop() const = 0;
    // What the loop calls that is written in C is among the functions: machine code between them
    // says nothing more.
    virtual bool has_native_functions() const { return false; }

    // By the number that the thread knows itself by. Must not outlive this, but may be used by
    // another thread of ours.
    virtual std::unique_ptr<InterpretedThread> thread(pid_t tid) const = 0;
    // Innermost first; while the process lives, when there is time for it. Functions that are gone
    // are left out.
    virtual std::vector<Frame> frames_of(const Glance& glance) = 0;
};

}  // namespace shadowprof::languages
