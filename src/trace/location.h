// trace: the seam between engines and profilers. Engines yield Traces, profilers consume them, and
// neither knows the other. This room has the words that both use: where code is (Location), the
// blocks into which it is cut (Block), what is captured in them (Capture, Slot), and what a thread
// did (trace.h: begin there). It knows instructions, but no process, no engine and no hotlist.
//
// This file: locations.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/address.h"

namespace shadowprof::trace {

enum class ModuleId : std::uint32_t {};

struct Module {
    std::string path;      // or "[vdso]", "[runtime code]", if it is not a file
    std::string build_id;  // lower-case hex; empty if it has none
    bool operator==(const Module&) const = default;
};

// Where code is, the same in every run of the same binary: never a raw address.
// `offset` is the link-time address that addr2line, objdump and BOLT use (address minus load bias).
// Code made at run time has no module: it lives in "[runtime code]", its offset is the raw address
// and `content` numbers the versions of code at that place, so that code which replaces other code
// is another location.
struct Location {
    ModuleId module{};
    std::uint64_t offset = 0;
    std::uint64_t content = 0;

    constexpr auto operator<=>(const Location&) const = default;
    constexpr Location operator+(std::uint64_t bytes) const {
        return {module, offset + bytes, content};
    }
};

constexpr std::uint64_t hash_of(const Location& l) {
    return combine_hashes(combine_hashes(static_cast<std::uint64_t>(l.module), l.offset),
                          l.content);
}

struct LocationHash {
    std::size_t operator()(const Location& l) const noexcept { return hash_of(l); }
};

// A function of a language that an interpreter executes. No file has a symbol for it: who saw it
// says what it is called. It has a place in a module of its language, "[python]", which follows
// from these three, so that it is the same in every run: its lines are the offsets after it.
struct InterpretedFunction {
    std::string name, file;
    std::uint32_t first_line = 0;
    bool operator==(const InterpretedFunction&) const = default;
};

// Interns modules: the same path and build id is the same module. For any thread.
class ModuleTable {
  public:
    ModuleId intern(const Module& module);
    Module at(ModuleId id) const;
    std::vector<Module> all() const;

    // Where the function begins.
    Location intern(ModuleId of_language, const InterpretedFunction& function);
    struct InterpretedPlace {
        InterpretedFunction function;
        Location begin;
    };
    // The function that the place is in, if an interpreter executes it.
    std::optional<InterpretedPlace> interpreted_at(const Location& place) const;

  private:
    mutable std::mutex mutex_;
    std::vector<Module> modules_;
    std::map<Location, InterpretedFunction> interpreted_;  // by beginning
};

}  // namespace shadowprof::trace
