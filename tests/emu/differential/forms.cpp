#include "forms.h"

#include <algorithm>
#include <unordered_map>

#include "decoder/decoder.h"

namespace shadowprof::differential {

using decoder::Flow;
using decoder::OperandKind;
using decoder::RegisterKind;

Encoding::Bytes Encoding::assemble() const {
    Bytes out;
    const auto put = [&](unsigned b) { out.code[out.size++] = static_cast<std::byte>(b); };
    const bool memory = mod != 3;
    const bool vsib_or_sib = memory && sib;
    const unsigned base_or_rm = vsib_or_sib ? base : rm;
    const unsigned x = vsib_or_sib ? index >> 3 & 1u : 0u;
    const unsigned b = base_or_rm >> 3 & 1u;
    constexpr unsigned prefixes[] = {0, 0x66, 0xf3, 0xf2};

    if (segment) put(segment);
    if (narrow_address) put(0x67);
    if (space == Space::legacy) {
        if (lock) put(0xf0);
        if (operand_size_too) put(0x66);
        if (prefix) put(prefixes[prefix]);
        const unsigned rex = (w ? 8u : 0u) | (reg >> 3 & 1u) << 2 | x << 1 | b;
        if (rex || !rex_w_only) put(0x40 | rex);
        if (map >= 1) put(0x0f);
        if (map == 2) put(0x38);
        if (map == 3) put(0x3a);
        // Registers in the opcode are varied as opcodes.
        put(opcode);
    } else if (space == Space::vex) {
        put(0xc4);
        put((~reg >> 3 & 1u) << 7 | (~x & 1u) << 6 | (~b & 1u) << 5 | map);
        put((w ? 0x80u : 0u) | (~vvvv & 15u) << 3 | (length & 1u) << 2 | prefix);
        put(opcode);
    } else {
        // For a register rm, X extends it to 32; for a vector index V' does.
        const unsigned x_bit = memory ? x : rm >> 4 & 1u;
        const unsigned v_high = vsib_or_sib && index >= 16 ? 1u : vvvv >> 4 & 1u;
        put(0x62);
        put((~reg >> 3 & 1u) << 7 | (~x_bit & 1u) << 6 | (~b & 1u) << 5 | (~reg >> 4 & 1u) << 4 |
            map);
        put((w ? 0x80u : 0u) | (~vvvv & 15u) << 3 | 4u | prefix);
        put((zeroing ? 0x80u : 0u) | length << 5 | (broadcast ? 0x10u : 0u) | (~v_high & 1u) << 3 |
            mask);
        put(opcode);
    }

    if (!memory) {
        put(0xc0 | (reg & 7u) << 3 | (rm & 7u));
    } else if (rip_relative) {
        put((reg & 7u) << 3 | 5u);
        out.displacement = out.size;
    } else if (sib) {
        put((mod & 3u) << 6 | (reg & 7u) << 3 | 4u);
        put(scale << 6 | (index & 7u) << 3 | (base & 7u));
        if (mod == 2 || (mod == 0 && (base & 7) == 5)) out.displacement = out.size;
    } else {
        put((mod & 3u) << 6 | (reg & 7u) << 3 | (rm & 7u));
        if (mod == 2) out.displacement = out.size;
    }
    if (memory && out.displacement) {
        for (unsigned i = 0; i < 4; ++i)
            put(static_cast<std::uint32_t>(displacement) >> 8 * i & 0xff);
    } else if (memory && mod == 1) {
        put(static_cast<std::uint32_t>(displacement) & 0xff);
    }
    for (unsigned i = 0; i < 8; ++i) put(immediate >> 8 * i & 0xff);
    return out;
}

std::optional<decoder::Instruction> decode(const Encoding& encoding, Address at) {
    const auto bytes = encoding.assemble();
    return decoder::decode({bytes.code.data(), std::min<std::size_t>(bytes.size, 15)}, at);
}

std::string form_name(const decoder::Instruction& i) {
    if (i.flow == Flow::system_call || i.flow == Flow::trap) return {};
    std::string name(decoder::mnemonic_name(i));
    if (i.repeat == decoder::Repeat::rep) name = "rep " + name;
    if (i.repeat == decoder::Repeat::repne) name = "repne " + name;
    if (i.lock) name = "lock " + name;
    for (const auto& operand : i.explicit_operands()) {
        switch (operand.kind) {
            case OperandKind::reg: {
                constexpr const char* kinds[] = {"?",  "r", "flags", "ip",  "seg",   "st",
                                                 "mm", "v", "k",     "x87", "mxcsr", "other"};
                name += operand.is_write_mask
                            ? " {k}"
                            : std::string(" ") + kinds[static_cast<unsigned>(operand.reg.kind)] +
                                  std::to_string(operand.reg.bits);
                if (operand.reg.high_byte) name += "h";
                break;
            }
            case OperandKind::memory:
                name += operand.memory.use == decoder::MemoryUse::gather ? " vsib" : " m";
                name += std::to_string(operand.bits);
                break;
            case OperandKind::immediate:
                name += " i";
                break;
            default:
                break;
        }
    }
    return name;
}

namespace {

std::string full_name(const Encoding& encoding, const decoder::Instruction& i) {
    auto name = form_name(i);
    if (name.empty()) return name;
    if (encoding.space == Space::vex) name += " vex";
    if (encoding.space == Space::evex) name += " evex";
    if (encoding.space == Space::evex && encoding.zeroing) name += " z";
    if (encoding.space == Space::evex && encoding.broadcast) name += " b";
    if (encoding.narrow_address && encoding.mod == 3) name += " a32";
    return name;
}

class Collector {
  public:
    void offer(const Encoding& encoding) {
        const auto instruction = decode(encoding, Address{0x10000});
        if (!instruction) return;
        auto name = full_name(encoding, *instruction);
        if (name.empty()) return;
        const auto [known, is_new] = by_name_.try_emplace(name, forms_.size());
        if (is_new) {
            forms_.push_back({name, std::string(decoder::isa_extension_name(*instruction)), {}});
        }
        auto& examples = forms_[known->second].examples;
        if (examples.size() < most_examples) examples.push_back(encoding);
    }
    std::vector<Form> take() { return std::move(forms_); }

  private:
    static constexpr std::size_t most_examples = 24;
    std::vector<Form> forms_;
    std::unordered_map<std::string, std::size_t> by_name_;
};

// With a register, with plain memory and with memory by SIB (vector indices need it).
template <typename Offer>
void with_operand_shapes(Encoding e, unsigned rm_values, const Offer& offer) {
    e.mod = 3;
    for (unsigned rm = 0; rm < rm_values; ++rm) {
        e.rm = static_cast<std::uint8_t>(rm);
        offer(e);
    }
    e.mod = 2;
    e.rm = 3;
    e.sib = false;
    offer(e);
    e.sib = true;
    e.base = 3;
    e.index = 6;
    offer(e);
}

void collect_legacy(Collector& collector) {
    for (unsigned map = 0; map < 4; ++map) {
        for (unsigned opcode = 0; opcode < 256; ++opcode) {
            for (unsigned prefixes = 0; prefixes < 12; ++prefixes) {
                Encoding e;
                e.map = static_cast<std::uint8_t>(map);
                e.opcode = static_cast<std::uint8_t>(opcode);
                e.prefix = static_cast<std::uint8_t>(prefixes % 4);
                e.operand_size_too = prefixes / 4 == 1 && e.prefix >= 2;
                e.lock = prefixes / 4 == 2;
                if (prefixes / 4 == 1 && e.prefix < 2) continue;
                for (const bool w : {false, true}) {
                    for (std::uint8_t reg = 0; reg < 8; ++reg) {
                        e.w = w;
                        e.reg = reg;
                        // x87, 0f 01 and 0f 1e (endbr) are distinguished by rm as well.
                        const bool by_rm = (map == 0 && opcode >= 0xd8 && opcode <= 0xdf) ||
                                           (map == 1 && (opcode == 0x01 || opcode == 0x1e));
                        with_operand_shapes(e, by_rm ? 8 : 2,
                                            [&](const Encoding& x) { collector.offer(x); });
                        // loop and jrcxz count in ecx then.
                        auto narrow = e;
                        narrow.narrow_address = true;
                        if (map == 0 && opcode >= 0xe0 && opcode <= 0xe3) collector.offer(narrow);
                    }
                }
            }
        }
    }
}

void collect_vex(Collector& collector) {
    for (std::uint8_t map = 1; map <= 3; ++map) {
        for (unsigned opcode = 0; opcode < 256; ++opcode) {
            for (unsigned bits = 0; bits < 16; ++bits) {
                for (std::uint8_t reg = 0; reg < 8; ++reg) {
                    Encoding e;
                    e.space = Space::vex;
                    e.map = map;
                    e.opcode = static_cast<std::uint8_t>(opcode);
                    e.prefix = bits & 3;
                    e.w = bits & 4;
                    e.length = static_cast<std::uint8_t>(bits >> 3);
                    e.reg = reg;
                    for (const std::uint8_t vvvv : {std::uint8_t{0}, std::uint8_t{5}}) {
                        e.vvvv = vvvv;
                        with_operand_shapes(e, 2, [&](const Encoding& x) { collector.offer(x); });
                    }
                }
            }
        }
    }
}

void collect_evex(Collector& collector) {
    for (const auto map : {1, 2, 3, 5, 6}) {
        for (unsigned opcode = 0; opcode < 256; ++opcode) {
            // Opcode groups, in which reg extends the opcode.
            const bool group = (map == 1 && 0x71 <= opcode && opcode <= 0x73) ||
                               (map == 2 && (opcode == 0xc6 || opcode == 0xc7));
            for (unsigned bits = 0; bits < 512; ++bits) {
                Encoding e;
                e.space = Space::evex;
                e.map = static_cast<std::uint8_t>(map);
                e.opcode = static_cast<std::uint8_t>(opcode);
                e.prefix = bits & 3;
                e.w = bits & 4;
                e.length = bits >> 3 & 3;
                e.broadcast = bits & 32;
                e.zeroing = bits & 64;
                e.mask = bits & 128 ? 1 : 0;
                e.vvvv = bits & 256 ? 5 : 0;
                for (std::uint8_t reg = 0; reg < (group ? 8 : 1); ++reg) {
                    e.reg = group ? reg : std::uint8_t{1};
                    with_operand_shapes(e, 1, [&](const Encoding& x) { collector.offer(x); });
                }
            }
        }
    }
}

}  // namespace

FormTable::FormTable() {
    Collector collector;
    collect_legacy(collector);
    collect_vex(collector);
    collect_evex(collector);
    forms_ = collector.take();
    std::sort(forms_.begin(), forms_.end(),
              [](const Form& a, const Form& b) { return a.name < b.name; });
}

Encoding vary(const Form& form, Random& random, Address at) {
    const auto& example = form.examples[random.below(form.examples.size())];
    const auto is_same_form = [&](const Encoding& e) {
        const auto i = decode(e, at);
        return i && full_name(e, *i) == form.name;
    };
    auto best = example;
    const auto attempt = [&](auto change) {
        for (unsigned n = 0; n < 3; ++n) {
            auto other = best;
            change(other);
            if (!is_same_form(other)) continue;
            best = other;
            return;
        }
    };
    const bool evex = example.space == Space::evex;
    const auto any_register = [&] {
        return static_cast<std::uint8_t>(random.below(evex ? 32 : 16));
    };
    attempt([&](Encoding& e) { e.immediate = random() >> (random.below(4) * 8); });
    attempt([&](Encoding& e) { e.reg = any_register(); });
    attempt([&](Encoding& e) { e.vvvv = any_register(); });
    if (best.mask)
        attempt([&](Encoding& e) { e.mask = static_cast<std::uint8_t>(1 + random.below(7)); });
    if (evex && best.mod == 3 && best.broadcast)
        attempt([&](Encoding& e) { e.length = static_cast<std::uint8_t>(random.below(4)); });
    if (best.space == Space::legacy && random.chance(0.2))
        attempt([&](Encoding& e) { e.rex_w_only = false; });
    if (best.mod == 3) {
        attempt([&](Encoding& e) { e.rm = any_register(); });
        return best;
    }
    attempt([&](Encoding& e) {
        e.mod = static_cast<std::uint8_t>(random.below(3));
        e.displacement = static_cast<std::int32_t>(random() & 0x7f) - 64;
        const bool needs_sib = e.sib && !is_same_form([&] {
                                   auto plain = e;
                                   plain.sib = false;
                                   return plain;
                               }());
        e.sib = needs_sib || random.chance(0.4);
        if (e.sib) {
            e.base = static_cast<std::uint8_t>(random.below(16));
            e.index = static_cast<std::uint8_t>(random.below(evex && needs_sib ? 32 : 16));
            e.scale = static_cast<std::uint8_t>(random.below(4));
        } else if (random.chance(0.15)) {
            e.rip_relative = true;
            e.mod = 0;
        } else {
            do {
                e.rm = static_cast<std::uint8_t>(random.below(16));
            } while ((e.rm & 7) == 4 || (e.mod == 0 && (e.rm & 7) == 5));
        }
    });
    if (random.chance(0.08)) attempt([&](Encoding& e) { e.narrow_address = true; });
    if (random.chance(0.1))
        attempt([&](Encoding& e) { e.segment = random.chance(0.5) ? 0x64 : 0x65; });
    return best;
}

}  // namespace shadowprof::differential
