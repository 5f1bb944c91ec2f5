// Python: what CPython 3.9 to 3.13 executes, whoever built it and however, as long as the symbol
// _PyRuntime is there, which is exported for debuggers.
#pragma once

#include "languages/known_functions.h"
#include "languages/python/threads.h"
#include "proc/maps.h"

namespace shadowprof::languages::python {

// Of one process.
class Python : public ReadInterpreter {
  public:
    Python(const Place& place, std::unique_ptr<const Memory> memory);

    std::string_view language() const override { return "python"; }
    std::vector<AddressRange> loop() const override { return {place_.loop}; }
    std::unique_ptr<InterpretedThread> thread(pid_t tid) const override {
        return std::make_unique<Thread>(tid, place_, memory());
    }

  private:
    std::optional<KnownFunctions::Read> read(const Glance::Frame& frame) const override;
    std::optional<CodeFacts> facts_of(Address function) const;

    const Place place_;
};

// nullptr: the process is none, of no version that is known, or only about to become one.
std::unique_ptr<Interpreter> find(pid_t pid, const proc::Maps& maps);

}  // namespace shadowprof::languages::python
