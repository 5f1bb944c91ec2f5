// Ruby: what CRuby 3.1 and 3.3 execute, stripped or not. Code that YJIT made notes where it is only
// at calls, so lines are of the last one.
#pragma once

#include "languages/known_functions.h"
#include "languages/ruby/threads.h"
#include "proc/maps.h"

namespace shadowprof::languages::ruby {

// Of one process.
class Ruby : public ReadInterpreter {
  public:
    Ruby(Place place, std::unique_ptr<const Memory> memory)
        : ReadInterpreter(std::move(memory)), place_(std::move(place)) {}

    std::string_view language() const override { return "ruby"; }
    std::vector<AddressRange> loop() const override { return place_.loop; }
    bool has_native_functions() const override { return true; }
    std::unique_ptr<InterpretedThread> thread(pid_t tid) const override {
        return std::make_unique<Thread>(tid, place_, memory());
    }

  private:
    std::optional<KnownFunctions::Read> read(const Glance::Frame& frame) const override;
    std::optional<KnownFunctions::Read> read_code(const Names& names,
                                                  const Glance::Frame& frame) const;
    bool is_still(const Glance::Frame& frame) const;

    const Place place_;
};

// nullptr: the process is none, of no version that is known, or only about to become one.
std::unique_ptr<Interpreter> find(pid_t pid, const proc::Maps& maps);

}  // namespace shadowprof::languages::ruby
