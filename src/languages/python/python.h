// Python: what CPython 3.9 to 3.13 executes, whoever built it and however, as long as the symbol
// _PyRuntime is there, which is exported for debuggers.
#pragma once

#include "languages/interpreter.h"
#include "languages/known_functions.h"
#include "languages/memory.h"
#include "languages/python/threads.h"
#include "proc/maps.h"

namespace shadowprof::languages::python {

// Of one process.
class Python : public Interpreter {
  public:
    Python(const Place& place, std::unique_ptr<const Memory> memory);

    std::string_view language() const override { return "python"; }
    std::vector<AddressRange> loop() const override { return {place_.loop}; }
    std::unique_ptr<InterpretedThread> thread(pid_t tid) const override {
        return std::make_unique<Thread>(tid, place_, *memory_);
    }
    std::vector<Frame> frames_of(const Glance& glance) override {
        return known_.frames_of(glance, [this](const auto& frame) { return read(frame); });
    }

  private:
    std::optional<KnownFunctions::Read> read(const Glance::Frame& frame) const;
    std::optional<CodeFacts> facts_of(Address function) const;

    const Place place_;
    const std::unique_ptr<const Memory> memory_;
    KnownFunctions known_;
};

// nullptr: the process is none, of no version that is known, or only about to become one.
std::unique_ptr<Interpreter> find(pid_t pid, const proc::Maps& maps);

}  // namespace shadowprof::languages::python
