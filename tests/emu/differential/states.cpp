// Which registers and memory a case begins with.
#include <algorithm>
#include <cstring>

#include "cases.h"
#include "decoder/decoder.h"
#include "emu/interpreter/extended_area.h"
#include "emu/interpreter/host_code.h"

namespace shadowprof::differential {

using decoder::Operand;
using decoder::OperandKind;
using decoder::RegisterKind;

namespace {

// Of a program: status flags, direction, and the identification flag.
constexpr std::uint64_t random_flags = 0x200cd5;

}  // namespace

namespace {

std::uint64_t any_value(Random& random) {
    constexpr std::uint64_t special[] = {0,
                                         1,
                                         ~std::uint64_t{0},
                                         0x7fffffffffffffff,
                                         0x8000000000000000,
                                         0x80000000,
                                         0x7fffffff,
                                         0x8000,
                                         0x7f,
                                         0x80,
                                         0xffffffff,
                                         63,
                                         64,
                                         0x3ff0000000000000,
                                         0x7ff0000000000000,
                                         0x7ff8000000000001,
                                         0x7ff0000000000001,
                                         0x000fffffffffffff,
                                         0x7f8000003f800000,
                                         0x7fc0000100000001,
                                         0x7c003c007e018001};
    switch (random.below(4)) {
        case 0:
            return special[random.below(std::size(special))];
        case 1:
            return random() >> random.below(64);
        case 2:
            return static_cast<std::uint64_t>(static_cast<std::int64_t>(random()) >>
                                              random.below(64));
        default:
            return random();
    }
}

void randomise_extended(emu::GuestState& state, Random& random) {
    emu::ExtendedArea area(state.extended.data());
    constexpr std::size_t x87_control = 0, x87_status = 2, x87_tag = 4, x87_opcode = 6,
                          x87_instruction = 8, x87_operand = 16, mxcsr = 24, registers = 32;
    std::memset(state.extended.data(), 0, state.extended.size());
    area.set<std::uint64_t>(512, emu::switched_components());
    // Usually all exceptions are masked; any rounding.
    const auto masks = [&](unsigned all) {
        return random.chance(0.9) ? all : static_cast<unsigned>(random.below(64));
    };
    area.set<std::uint16_t>(x87_control,
                            static_cast<std::uint16_t>(masks(0x3f) | 0x40 | random.below(4) << 8 |
                                                       random.below(4) << 10));
    auto status = static_cast<std::uint16_t>(random.below(8) << 11 | (random() & 0x4700));
    if (random.chance(0.1)) {
        const auto raised = static_cast<std::uint16_t>(random() & 0x7f);
        const bool is_pending = raised & ~area.get<std::uint16_t>(x87_control) & 0x3f;
        status |= static_cast<std::uint16_t>(raised | (is_pending ? 0x8080 : 0));
    }
    area.set<std::uint16_t>(x87_status, status);
    if (random.chance(0.5)) {
        area.set<std::uint16_t>(x87_opcode, random() & 0x7ff);
        area.set<std::uint64_t>(x87_instruction, random() >> 17);
        area.set<std::uint64_t>(x87_operand, random() >> 17);
    }
    area.set<std::uint8_t>(x87_tag,
                           static_cast<std::uint8_t>(random.chance(0.5) ? 0xff : random() & 0xff));
    area.set<std::uint32_t>(
        mxcsr,
        static_cast<std::uint32_t>(masks(0x3f) << 7 | random.below(4) << 13 | (random() & 0x8040)));
    for (unsigned n = 0; n < 8; ++n) {
        area.set<std::uint64_t>(registers + 16 * n, any_value(random));
        const auto exponent =
            random.chance(0.7) ? 0x3fff - 8 + random.below(16) : random() & 0xffff;
        area.set<std::uint16_t>(registers + 16 * n + 8, static_cast<std::uint16_t>(exponent));
        if (random.chance(0.7)) {
            const auto significand = area.get<std::uint64_t>(registers + 16 * n);
            area.set<std::uint64_t>(registers + 16 * n, significand | std::uint64_t{1} << 63);
        }
    }
    for (unsigned n = 0; n < 32; ++n) {
        emu::ExtendedArea::Vector value;
        for (auto& word : value) word = any_value(random);
        area.set_vector(n, value);
    }
    for (unsigned n = 0; n < 8; ++n) area.set_mask(n, random.chance(0.3) ? ~0ull : random());
    if (random.chance(0.1)) {
        const auto absent = random() & 0xe6 & emu::switched_components();
        area.set<std::uint64_t>(512, emu::switched_components() & ~absent);
    }
}

}  // namespace

// A place where an operand of that size may fault or cross a boundary.
Address Differential::operand_address(unsigned bits) {
    const auto bytes = std::max(bits / 8, 1u);
    const auto end_of = [](std::size_t page) { return Arena::begin + (page + 1) * page_size; };
    const auto chance = random_.unit();
    Address at{};
    if (chance < 0.55) {
        at = Arena::begin + random_.below(Arena::writable_pages * page_size - bytes);
    } else if (chance < 0.70) {  // across two writable pages
        at = end_of(0) - random_.below(bytes + 1);
    } else if (chance < 0.76) {  // across into the read-only page
        at = end_of(1) - random_.below(bytes + 1);
    } else if (chance < 0.80) {
        at = end_of(1) + random_.below(page_size - bytes);
    } else if (chance < 0.90) {  // ends where memory ends
        at = end_of(2) - bytes;
    } else if (chance < 0.94) {  // or beyond
        at = end_of(2) - random_.below(bytes + 1);
    } else if (chance < 0.97) {  // begins before memory begins
        at = Arena::begin - random_.below(bytes + 1);
    } else {
        at = Arena::begin + Arena::size + random_.below(page_size);
    }
    if (random_.chance(0.5) && bytes >= 16) at.value &= ~std::uint64_t{63};
    return at;
}

// Sets registers so that the operand lies somewhere interesting.
void Differential::place_operand(const Operand& operand) {
    const auto& m = operand.memory;
    auto target = operand_address(std::max<unsigned>(operand.bits, 8));
    if (m.segment == decoder::Segment::fs) target = target - initial_.fs_base;
    if (m.segment == decoder::Segment::gs) target = target - initial_.gs_base;
    target = target - static_cast<std::uint64_t>(m.displacement);
    if (m.use == decoder::MemoryUse::gather) {
        // Most elements near the base, some not.
        emu::ExtendedArea area(initial_.extended.data());
        auto indices = area.vector(m.index.number);
        for (auto& word : indices) {
            const auto low = random_.below(200), high = random_.below(200);
            if (random_.chance(0.9)) word = random_.chance(0.5) ? low | high << 32 : low;
        }
        area.set_vector(m.index.number, indices);
        if (m.base.kind == RegisterKind::general) initial_.general[m.base.number] = target.value;
        return;
    }
    if (m.index && m.index.bits >= 32) {
        const auto index = random_.chance(0.7) ? random_.below(64) : random_();
        if (!m.base || m.base.number == m.index.number) {
            const auto scale = m.scale + (m.base.is_general(m.index.number) ? 1u : 0u);
            initial_.general[m.index.number] = target.value / scale;
            return;
        }
        initial_.general[m.index.number] = index;
        target = target - index * m.scale;
    }
    if (m.base.kind == RegisterKind::general) {
        initial_.general[m.base.number] = target.value;
        if (m.address_bits == 32 && random_.chance(0.5))
            initial_.general[m.base.number] |= random_() << 32;
    }
}

void Differential::make_state() {
    using enum decoder::Mnemonic;
    auto& s = initial_;
    for (auto& reg : s.general) reg = any_value(random_);
    for (auto& reg : s.general)
        if (random_.chance(0.2)) reg = operand_address(64).value;
    s.general[decoder::rsp] = operand_address(64).value & ~std::uint64_t{7};
    s.general[decoder::rbp] = operand_address(64).value & ~std::uint64_t{7};
    // Calls and returns are to go well most of the time.
    if (!inner_.empty() && random_.chance(0.9))
        s.general[decoder::rsp] = Arena::begin.value + 1024 + 8 * random_.below(700);
    s.rip = start_;
    s.rflags = 0x202 | (random_() & random_flags);
    if (random_.chance(0.7)) s.rflags &= ~std::uint64_t{0x400};
    s.fs_base = random_.below(0x1000) * 8;
    s.gs_base = Arena::begin.value + random_.below(Arena::size);
    randomise_extended(s, random_);
    if (random_.chance(0.3)) arena_.randomise(random_);

    // Of several instructions the later ones find what the earlier ones left.
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
        const auto& i = step->instruction;
        for (const auto& operand : i.operands())
            if (operand.kind == OperandKind::memory) place_operand(operand);
        if (i.repeat != decoder::Repeat::none) s.general[decoder::rcx] = random_.below(300);
        if (i.mnemonic == movdir64b || i.mnemonic == enqcmd)
            s.general[i.operands()[0].reg.number] = operand_address(512).value;
        const bool is_bit_string =
            i.mnemonic == bt || i.mnemonic == bts || i.mnemonic == btr || i.mnemonic == btc;
        if (is_bit_string && i.operands()[1].kind == OperandKind::reg && random_.chance(0.8))
            s.general[i.operands()[1].reg.number] =
                random_.below(8192) - (random_.chance(0.3) ? 8192 : 0);
        const bool saves_state = decoder::mnemonic_name(i).starts_with("xsave") ||
                                 decoder::mnemonic_name(i).starts_with("xrstor") ||
                                 decoder::mnemonic_name(i).starts_with("fx");
        if (saves_state && random_.chance(0.9)) {
            s.general[decoder::rax] &= emu::switched_components();
            s.general[decoder::rdx] &= emu::switched_components() >> 32;
        }
        if (saves_state && random_.chance(0.9)) {
            const auto& m = i.operands()[0].memory;
            if (m.base.kind == RegisterKind::general && !m.index)
                s.general[m.base.number] = Arena::begin.value + random_.below(40) * 64 -
                                           static_cast<std::uint64_t>(m.displacement);
        }
        if (i.mnemonic == xgetbv) s.general[decoder::rcx] = random_.below(3);
        if (i.mnemonic == lar || i.mnemonic == lsl || i.mnemonic == verr || i.mnemonic == verw)
            s.general[decoder::rax] = random_.below(64);
    }

    // Values that end up in rip or in the flags.
    const auto& last = steps_.back().instruction;
    const auto somewhere = slot_ + beyond_code + random_.below(100);
    if (last.flow == decoder::Flow::return_) {
        arena_.put({s.general[decoder::rsp]}, std::as_bytes(std::span{&somewhere.value, 1}));
    } else if (last.flow == decoder::Flow::indirect_jump ||
               last.flow == decoder::Flow::indirect_call) {
        const auto& target = last.operands()[0];
        if (target.kind == OperandKind::reg) {
            s.general[target.reg.number] = somewhere.value;
        } else {
            const auto& m = target.memory;
            auto at = static_cast<std::uint64_t>(m.displacement);
            if (m.base.kind == RegisterKind::instruction_pointer)
                at += last.end().value;
            else if (m.base)
                at += s.general[m.base.number];
            if (m.index) at += s.general[m.index.number] * m.scale;
            if (m.address_bits == 32) at &= 0xffffffff;
            if (m.segment == decoder::Segment::fs) at += s.fs_base;
            if (m.segment == decoder::Segment::gs) at += s.gs_base;
            arena_.put({at}, std::as_bytes(std::span{&somewhere.value, 1}));
        }
    }
    for (const auto& step : steps_) {
        if (step.instruction.mnemonic != popf && step.instruction.mnemonic != popfq) continue;
        // Without the alignment-check flag, and seldom with the trap flag, in every place it may be
        // popped from.
        constexpr std::byte harmless{0}, trap_flag{1};
        const auto second = random_.chance(0.1) ? trap_flag : harmless;
        for (std::int64_t at = -64; at < 64; at += 2) {
            const auto place = s.general[decoder::rsp] + static_cast<std::uint64_t>(at);
            arena_.put({place + 1}, {&second, 1});
            arena_.put({place + 2}, {&harmless, 1});
        }
    }
}

}  // namespace shadowprof::differential
