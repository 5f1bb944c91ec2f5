// Ruby: what CRuby 3.1 and 3.3 execute, stripped or not. Code that YJIT made notes where it is only
// at calls, so lines are of the last one.
#pragma once

#include "languages/interpreter.h"
#include "languages/known_functions.h"
#include "languages/memory.h"
#include "languages/ruby/threads.h"
#include "proc/maps.h"

namespace shadowprof::languages::ruby {

// Of one process.
class Ruby : public Interpreter {
  public:
    Ruby(Place place, std::unique_ptr<const Memory> memory)
        : place_(std::move(place)), memory_(std::move(memory)) {}

    std::string_view language() const override { return "ruby"; }
    std::vector<AddressRange> loop() const override { return place_.loop; }
    bool has_native_functions() const override { return true; }
    std::unique_ptr<InterpretedThread> thread(pid_t tid) const override {
        return std::make_unique<Thread>(tid, place_, *memory_);
    }
    std::vector<Frame> frames_of(const Glance& glance) override {
        return known_.frames_of(glance, [this](const auto& frame) { return read(frame); });
    }

  private:
    std::optional<KnownFunctions::Read> read(const Glance::Frame& frame) const;
    std::optional<KnownFunctions::Read> read_code(const Names& names,
                                                  const Glance::Frame& frame) const;
    bool is_still(const Glance::Frame& frame) const;

    const Place place_;
    const std::unique_ptr<const Memory> memory_;
    KnownFunctions known_;
};

// nullptr: the process is none, of no version that is known, or only about to become one.
std::unique_ptr<Interpreter> find(pid_t pid, const proc::Maps& maps);

}  // namespace shadowprof::languages::ruby
