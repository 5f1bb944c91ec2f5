#include "end_state.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "decoder/decoder.h"

namespace shadowprof::equivalence {

namespace {

// All that a program can see of rflags: the status flags, direction, alignment check and the
// identification flag. The resume flag is the debugger's, the rest the kernel's.
constexpr std::uint64_t visible_flags = 0x240cd5;

constexpr std::size_t x87_size = 160;

// Registers and control words of the x87 unit, without mxcsr, which lies among them. Of each 80-bit
// register's 16 bytes the last six are reserved.
std::array<std::byte, x87_size> x87_of(const ptrace::ExtendedState& state) {
    constexpr std::size_t mxcsr_at = 24, mxcsr_size = 8, registers_at = 32;
    std::array<std::byte, x87_size> x87{};
    if (state.present() & 1) {
        std::memcpy(x87.data(), state.area().data(), x87.size());
    } else {
        x87[0] = std::byte{0x7f};  // the control word's initial value is 0x37f
        x87[1] = std::byte{0x03};
    }
    std::memset(x87.data() + mxcsr_at, 0, mxcsr_size);
    for (std::size_t at = registers_at; at < x87.size(); at += 16)
        std::memset(x87.data() + at + 10, 0, 6);
    return x87;
}

std::string hexadecimal(std::span<const std::byte> bytes) {
    std::string text;
    for (const auto byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    return text;
}

std::string hexadecimal(const std::array<std::uint64_t, 8>& words) {
    std::string text;
    for (auto word = words.rbegin(); word != words.rend(); ++word)
        text += fmt::format("{}{:016x}", text.empty() ? "" : "_", *word);
    return text;
}

std::string line(const std::string& what, const std::string& interpreter,
                 const std::string& other) {
    return fmt::format("{}: interpreter {}, otherwise {}", what, interpreter, other);
}

std::string line(const std::string& what, std::uint64_t interpreter, std::uint64_t other) {
    return line(what, fmt::format("{:#x}", interpreter), fmt::format("{:#x}", other));
}

}  // namespace

EndState end_state_of(const emu::GuestState& state, const EndState& start) {
    EndState end = start;
    state.store_into(end.registers);
    state.store_into(end.extended);
    return end;
}

std::vector<std::string> register_differences(const EndState& interpreter, const EndState& other) {
    std::vector<std::string> lines;
    const auto compare = [&](const std::string& what, const auto& a, const auto& b) {
        if (a != b) lines.push_back(line(what, a, b));
    };
    const auto& ours = interpreter.registers;
    const auto& theirs = other.registers;
    for (std::uint8_t n = 0; n < 16; ++n)
        compare(decoder::name({decoder::RegisterKind::general, n, false, 64}), ours.general(n),
                theirs.general(n));
    compare("rip", ours.rip().value, theirs.rip().value);
    compare("rflags", ours.raw.eflags & visible_flags, theirs.raw.eflags & visible_flags);
    compare("fs base", std::uint64_t{ours.raw.fs_base}, std::uint64_t{theirs.raw.fs_base});
    compare("gs base", std::uint64_t{ours.raw.gs_base}, std::uint64_t{theirs.raw.gs_base});
    for (unsigned n = 0; n < 32; ++n) {
        const auto a = interpreter.extended.vector(n), b = other.extended.vector(n);
        if (a != b) lines.push_back(line(fmt::format("zmm{}", n), hexadecimal(a), hexadecimal(b)));
    }
    for (unsigned n = 0; n < 8; ++n)
        compare(fmt::format("k{}", n), interpreter.extended.mask(n), other.extended.mask(n));
    compare("mxcsr", std::uint64_t{interpreter.extended.mxcsr()},
            std::uint64_t{other.extended.mxcsr()});
    const auto a = x87_of(interpreter.extended), b = x87_of(other.extended);
    constexpr std::size_t row = 16;
    for (std::size_t at = 0; at < a.size(); at += row)
        if (std::memcmp(a.data() + at, b.data() + at, row) != 0)
            lines.push_back(line(fmt::format("x87 state, bytes {} to {}", at, at + row - 1),
                                 hexadecimal({a.data() + at, row}),
                                 hexadecimal({b.data() + at, row})));
    return lines;
}

// Only in pages that the interpreter used and could write. Others may write to shared ones.
std::vector<std::string> memory_differences(emu::MemoryView& view, const proc::Memory& memory,
                                            const proc::Maps& maps) {
    std::vector<std::string> lines;
    const auto& table = view.table();
    std::array<std::byte, page_size> theirs;
    for (std::uint64_t n = 0; n <= table.mask; ++n) {
        const auto& page = table.pages[n];
        if (!page.data || !page.writable) continue;
        const auto* mapping = maps.mapping_at({page.address});
        if (!mapping || mapping->shared) continue;
        if (memory.read({page.address}, theirs) != theirs.size()) {
            lines.push_back(fmt::format("memory at {:#x} is gone", page.address));
            continue;
        }
        constexpr std::size_t word = 8;
        for (std::size_t at = 0; at < theirs.size(); at += word)
            if (std::memcmp(page.data + at, theirs.data() + at, word) != 0)
                lines.push_back(line(fmt::format("memory at {:#x}", page.address + at),
                                     hexadecimal({page.data + at, word}),
                                     hexadecimal({theirs.data() + at, word})));
    }
    return lines;
}

}  // namespace shadowprof::equivalence
