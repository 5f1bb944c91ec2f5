// Functions that threads were seen in, which are read once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "languages/interpreter.h"
#include "languages/memory.h"

namespace shadowprof::languages {

class KnownFunctions {
  public:
    struct Read {
        Function function;
        // Nothing: no line of its own.
        std::function<std::optional<std::uint32_t>(std::int64_t position)> line_at;
    };
    // Nothing: the function is not what was seen any more, or damaged.
    using Reader = std::function<std::optional<Read>(const Glance::Frame&)>;

    // Innermost first. Functions that cannot be read are left out.
    std::vector<Frame> frames_of(const Glance& glance, const Reader& read);

  private:
    struct Known {
        std::uint64_t contents = 0;
        std::shared_ptr<const Function> function;
        decltype(Read::line_at) line_at;
        std::map<std::int64_t, std::uint32_t> lines;  // by position
    };
    Known* known(const Glance::Frame& frame, const Reader& read);

    std::map<std::pair<Address, Address>, Known> known_;
};

// An interpreter whose functions are read from the process's memory.
class ReadInterpreter : public Interpreter {
  public:
    explicit ReadInterpreter(std::unique_ptr<const Memory> memory) : memory_(std::move(memory)) {}
    std::vector<Frame> frames_of(const Glance& glance) override {
        return known_.frames_of(glance, [this](const auto& frame) { return read(frame); });
    }

  protected:
    const Memory& memory() const { return *memory_; }

  private:
    virtual std::optional<KnownFunctions::Read> read(const Glance::Frame& frame) const = 0;

    const std::unique_ptr<const Memory> memory_;
    KnownFunctions known_;
};

}  // namespace shadowprof::languages
