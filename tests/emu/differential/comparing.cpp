// Compares the state that the engines left with the CPU's.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "cases.h"
#include "decoder/decoder.h"
#include "emu/interpreter/extended_area.h"
#include "exceptions.h"

namespace shadowprof::differential {

using decoder::Operand;
using decoder::OperandKind;

namespace {

std::uint64_t comparable_flags(const emu::GuestState& s) {
    constexpr std::uint64_t resume = 0x10000;
    return s.rflags & ~resume;
}

// Of the x87 unit's last instruction; translated code leaves another there.
constexpr std::size_t x87_opcode = 6, x87_instruction_pointer = 8;

void compare_extended(const emu::GuestState& a, const emu::GuestState& b, bool x87_instruction,
                      std::string& differences) {
    auto bytes_a = a.extended, bytes_b = b.extended;
    const emu::ExtendedArea x(bytes_a.data()), y(bytes_b.data());
    for (unsigned n = 0; n < 32; ++n) {
        const auto v = x.vector(n), w = y.vector(n);
        if (v == w) continue;
        differences += fmt::format("  zmm{}", n);
        for (std::size_t k = 8; k-- > 0;)
            differences += v[k] == w[k] ? fmt::format(" {:016x}", v[k])
                                        : fmt::format(" {:016x}|{:016x}", v[k], w[k]);
        differences += "\n";
    }
    for (unsigned n = 0; n < 8; ++n)
        if (x.mask(n) != y.mask(n))
            differences += fmt::format("  k{} {:x} | {:x}\n", n, x.mask(n), y.mask(n));
    if (x.get<std::uint32_t>(24) != y.get<std::uint32_t>(24))
        differences += fmt::format("  mxcsr {:x} | {:x}\n", x.get<std::uint32_t>(24),
                                   y.get<std::uint32_t>(24));
    const auto x87 = [](const emu::ExtendedArea& area, std::size_t offset, std::size_t size) {
        const bool present = area.present() & 1;
        std::uint64_t value = 0;
        if (present)
            value = area.get<std::uint64_t>(offset);
        else if (offset == 0)
            value = 0x37f;
        return size >= 8 ? value : value & ((std::uint64_t{1} << 8 * size) - 1);
    };
    struct Field {
        const char* name;
        std::size_t offset, size;
    };
    constexpr Field fields[] = {{"control", 0, 2},
                                {"status", 2, 2},
                                {"tags", 4, 1},
                                {"opcode", x87_opcode, 2},
                                {"instruction", x87_instruction_pointer, 8},
                                {"operand", 16, 8}};
    for (const auto& field : fields) {
        const bool remembers = field.offset >= x87_opcode;
        if (remembers && loses_x87_pointers()) continue;
        if (field.offset == x87_instruction_pointer && !x87_instruction) continue;
        const auto v = x87(x, field.offset, field.size), w = x87(y, field.offset, field.size);
        if (v != w) differences += fmt::format("  x87 {} {:x} | {:x}\n", field.name, v, w);
    }
    for (std::size_t n = 0; n < 8; ++n) {
        const auto at = 32 + 16 * n;
        if (x87(x, at, 8) != x87(y, at, 8) || x87(x, at + 8, 2) != x87(y, at + 8, 2))
            differences +=
                fmt::format("  st{} {:04x}{:016x} | {:04x}{:016x}\n", n, x87(x, at + 8, 2),
                            x87(x, at, 8), x87(y, at + 8, 2), x87(y, at, 8));
    }
}

bool same_kind(const emu::Stop& stop, const NativeEnd& native) {
    using enum emu::StopKind;
    switch (native.signal) {
        case 0:
            return stop.kind == no_code;
        case SIGTRAP:
            return stop.kind == trap;
        case SIGFPE:
            // A recorded run looks at memory before the instruction has a chance to refuse.
            return stop.kind == arithmetic || stop.kind == memory_fault;
        case SIGILL:
            return stop.kind != instructions;
        default:
            return stop.kind == memory_fault || stop.kind == general_protection ||
                   stop.kind == trap || stop.kind == unsupported;
    }
}

}  // namespace

std::string general_name(std::size_t number) {
    return decoder::name(
        {decoder::RegisterKind::general, static_cast<std::uint8_t>(number), false, 64});
}

std::uint64_t Differential::flag_difference() const {
    return comparable_flags(interpreted_) ^ comparable_flags(native_);
}

std::uint64_t Differential::undefined_flags() const {
    std::uint64_t undefined = 0;
    for (const auto& step : steps_) undefined |= step.instruction.flags_undefined;
    return undefined;
}

void Differential::compare(const emu::GuestState& mine, const std::vector<std::byte>& memory,
                           std::uint64_t ignored_flags, std::string& differences) const {
    const bool is_interpreter = &mine == &interpreted_;
    if (mine.rip != native_.rip)
        differences += fmt::format("  rip {:x} | {:x}\n", mine.rip.value, native_.rip.value);
    for (std::size_t n = 0; n < 16; ++n)
        if (mine.general[n] != native_.general[n])
            differences += fmt::format("  {} {:x} | {:x} (was {:x})\n", general_name(n),
                                       mine.general[n], native_.general[n], initial_.general[n]);
    if (mine.fs_base != native_.fs_base || mine.gs_base != native_.gs_base)
        differences += fmt::format("  segment bases {:x}, {:x} | {:x}, {:x}\n", mine.fs_base,
                                   mine.gs_base, native_.fs_base, native_.gs_base);
    compare_extended(mine, native_, is_interpreter, differences);
    if (std::memcmp(memory.data(), native_arena_.data(), memory.size()) != 0) {
        const auto at = static_cast<std::size_t>(
            std::mismatch(memory.begin(), memory.end(), native_arena_.begin()).first -
            memory.begin());
        differences +=
            fmt::format("  memory at {:x}: {:02x} | {:02x} (was {:02x})\n", Arena::begin.value + at,
                        std::to_integer<int>(memory[at]), std::to_integer<int>(native_arena_[at]),
                        std::to_integer<int>(initial_arena_[at]));
    }
    if ((comparable_flags(mine) ^ comparable_flags(native_)) & ~ignored_flags)
        differences += fmt::format("  flags {:x} | {:x} (was {:x})\n", comparable_flags(mine),
                                   comparable_flags(native_), comparable_flags(initial_));
}

bool Differential::faults_in_any_order() const {
    return std::ranges::any_of(
        steps_, [](const Step& step) { return accesses_in_any_order(step.instruction); });
}

std::string Differential::differences(const emu::Stop& stop, const NativeEnd& native) {
    std::string differences;
    // The interpreter only ends where there is no code; the CPU tries to execute it.
    const bool fetched_nothing = native.address_known && native.fault_address == native_.rip &&
                                 stop.kind == emu::StopKind::no_code;
    if (!fetched_nothing && !same_kind(stop, native))
        differences += fmt::format("  end: {} at {:x} | signal {}\n", stop.reason,
                                   stop.fault_address.value, native.signal);
    auto ignored_flags = undefined_flags();
    if (native.signal == SIGSEGV)
        for (const auto& step : steps_)
            if (changes_flags_before_it_faults(step.instruction))
                ignored_flags |= step.instruction.flags_written;
    compare(interpreted_, interpreted_arena_, ignored_flags, differences);
    if (!faults_in_any_order() && native.address_known &&
        stop.kind == emu::StopKind::memory_fault &&
        (native.fault_address.value ^ stop.fault_address.value) & page_mask)
        differences += fmt::format("  fault address {:x} | {:x}\n", stop.fault_address.value,
                                   native.fault_address.value);
    return differences.empty() ? differences : "  (interpreter | CPU)\n" + differences;
}

// The CPU executed both; only what is captured before an instruction may fault before it does.
std::string Differential::translated_differences(const NativeEnd& native,
                                                 const TranslatedCode::End& end,
                                                 TranslatedCode::Version version) {
    if (!end.broken.empty()) return "  translator: " + end.broken + "\n";
    if (shows_x87_pointers()) return {};
    std::string differences;
    const bool captures = version == TranslatedCode::Version::values;
    const bool refused_later =
        captures && end.native.signal == SIGSEGV && native.signal != 0 && native.signal != SIGTRAP;
    if (end.native.signal != native.signal && !refused_later)
        differences +=
            fmt::format("  end: signal {} | signal {}\n", end.native.signal, native.signal);
    // Of an address of 32 bits with a segment's base, AMD's fxsave reports the lower half: the
    // translated instruction has the whole address in a register.
    if (native.address_known && end.native.address_known && !captures && !faults_in_any_order() &&
        native.fault_address != end.native.fault_address)
        differences += fmt::format("  fault address {:x} | {:x}\n", end.native.fault_address.value,
                                   native.fault_address.value);
    // A system call leads out of the cache.
    const auto ignored_flags = end.void_flags | flags_lost_in_system_calls();
    compare(translated_, translated_arena_, ignored_flags, differences);
    return differences.empty() ? differences : "  (translator | CPU)\n" + differences;
}

std::string Differential::trace_differences(const TranslatedCode::End& end,
                                            TranslatedCode::Version version) {
    const auto text = [&](const std::vector<trace::BlockId>& blocks) {
        std::string line;
        for (const auto id : blocks) {
            const auto& block = world_->blocks.at(id);
            line += fmt::format(" {:x}+{}", block.start.value, block.instructions.size());
        }
        return line;
    };
    const bool same_blocks =
        std::equal(end.blocks.begin(), end.blocks.end(), interpreted_blocks_.begin(),
                   interpreted_blocks_.end(), [&](trace::BlockId a, trace::BlockId b) {
                       // Code of a page in which other code changed may be published anew.
                       const auto &x = world_->blocks.at(a), &y = world_->blocks.at(b);
                       return a == b || (world_->changes && x.start == y.start &&
                                         x.end() == y.end() && x.exit == y.exit);
                   });
    if (!same_blocks)
        return fmt::format("  (translator | interpreter)\n  blocks{} |{}\n", text(end.blocks),
                           text(interpreted_blocks_));
    if (version == TranslatedCode::Version::lean || end.values == interpreted_values_) return {};
    if (shows_x87_pointers()) return {};  // a load may have read what was saved
    std::string differences = "  (translator | interpreter)\n";
    std::size_t n = 0;
    for (const auto id : end.blocks) {
        const auto& block = world_->blocks.at(id);
        for (const auto& slot : block.slots) {
            if (n < end.values.size() && n < interpreted_values_.size() &&
                end.values[n] != interpreted_values_[n])
                differences += fmt::format("  slot of kind {} of {}, operand {}: {:x} | {:x}\n",
                                           static_cast<unsigned>(slot.kind),
                                           decoder::text(block.instructions[slot.instruction]),
                                           slot.operand, end.values[n], interpreted_values_[n]);
            ++n;
        }
    }
    return differences;
}

// Where translated code was executed, or how it was rewritten, shows then (see exceptions.h).
bool Differential::shows_x87_pointers() const {
    bool was_used = false;
    for (const auto& step : steps_) {
        if (was_used && saves_x87_pointers(step.instruction)) return true;
        const bool uses = is_x87_instruction(step.instruction);
        if (uses && may_be_rewritten(step.instruction)) return true;
        was_used = was_used || uses;
    }
    return false;
}

}  // namespace shadowprof::differential
