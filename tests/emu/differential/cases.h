// One case: a few instructions and a state, run by the interpreter and by the CPU, and compared.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "emu/interpreter.h"
#include "forms.h"
#include "native.h"

namespace shadowprof::differential {

// Memory for the operands: pages that can be written, one that can only be read, and nothing
// around them.
class Arena : public emu::PageSource {
  public:
    Arena();
    ~Arena() override;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    static constexpr Address begin{0x30001000};
    static constexpr std::size_t writable_pages = 2, pages = 3;
    static constexpr std::size_t size = pages * emu::page_size;

    void fetch(Address first, std::span<Page> wanted) override;
    std::byte* data() const { return reinterpret_cast<std::byte*>(begin.value); }
    void randomise(Random& random);
    // Puts bytes there, as far as there is memory.
    void put(Address at, std::span<const std::byte> bytes);

  private:
    void protect_read_only_page(bool protect);
};

struct FormStatistics {
    std::uint64_t executed = 0;  // cases, on a CPU that has the instruction
    std::uint64_t illegal = 0;   // the CPU does not know it
    std::uint64_t faulted = 0;
    std::uint64_t mismatches = 0;
    std::uint64_t undefined_flags = 0;  // only flags differed that are undefined
    std::uint64_t excepted = 0;
    std::uint64_t unsupported = 0;

    FormStatistics& operator+=(const FormStatistics& other) {
        executed += other.executed;
        illegal += other.illegal;
        faulted += other.faulted;
        mismatches += other.mismatches;
        undefined_flags += other.undefined_flags;
        excepted += other.excepted;
        unsupported += other.unsupported;
        return *this;
    }
};

class Differential {
  public:
    Differential(const FormTable& forms, std::uint64_t seed);
    ~Differential();

    // Runs one sequence of instructions with several states.
    void run_sequence();
    void run(std::uint64_t cases);

    std::uint64_t cases() const { return cases_; }
    std::uint64_t mismatches() const { return mismatches_; }
    // Cases that differed once, and not when they were run again (see exceptions.h).
    std::uint64_t agreed_later() const { return agreed_later_; }
    const std::vector<FormStatistics>& statistics() const { return statistics_; }
    // The first few, for people.
    const std::vector<std::string>& reports() const { return reports_; }

  private:
    struct Step {
        std::size_t form;
        decoder::Instruction instruction;
    };
    class Blocks;

    std::size_t pick_form(const std::vector<std::size_t>& extensions);
    bool make_sequence();
    void make_state();
    void place_operand(const decoder::Operand& operand);
    Address operand_address(unsigned bits);
    void run_state();
    std::string differences(const emu::Stop& stop, const NativeEnd& native);
    std::uint64_t flag_difference() const;
    std::uint64_t undefined_flags() const;
    void count(const emu::Stop& stop, const NativeEnd& native, const std::string& differences);
    // The step that begins there; the last one if none does.
    std::size_t step_at(Address at) const;

    const FormTable& forms_;
    Random random_;
    std::vector<std::vector<std::size_t>> by_extension_;
    std::vector<FormStatistics> statistics_;
    Arena arena_;
    std::unique_ptr<Blocks> blocks_;
    emu::MemoryView view_;
    emu::Interpreter interpreter_;
    NativeCode code_;  // its signal handlers go before the interpreter's

    std::vector<Step> steps_;
    Address slot_ = NativeCode::begin;
    Address start_, end_;
    emu::GuestState initial_, interpreted_, native_;
    std::vector<std::byte> initial_arena_;
    std::uint64_t cases_ = 0, mismatches_ = 0, agreed_later_ = 0;
    std::vector<std::string> reports_;
};

}  // namespace shadowprof::differential
