// Every form of instruction: what the decoder tells apart by name, encoding and kinds and sizes of
// operands. The opcode maps are gone through systematically; whatever decodes is put with the
// others of its form, so that each form, common or exotic, gets an equal share of the cases.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "decoder/instruction.h"

namespace shadowprof::differential {

enum class Space : std::uint8_t { legacy, vex, evex };

// An instruction's fields, before they are put into bytes.
struct Encoding {
    Space space = Space::legacy;
    std::uint8_t map = 0;  // legacy: 0, 1: 0f, 2: 0f 38, 3: 0f 3a; else as encoded
    std::uint8_t opcode = 0;
    std::uint8_t prefix = 0;        // 0, 66, f2, f3 in VEX's order
    bool operand_size_too = false;  // 66 besides f2 or f3
    bool lock = false;
    bool w = false;
    std::uint8_t length = 0;  // L, L'L
    bool broadcast = false, zeroing = false;
    std::uint8_t mask = 0;
    std::uint8_t reg = 0;  // 0 … 31 in EVEX
    std::uint8_t rm = 0;   // a register if mod is 3
    std::uint8_t vvvv = 0;
    std::uint8_t mod = 3;
    bool sib = false;
    std::uint8_t base = 0, index = 4, scale = 0;  // with sib
    bool rip_relative = false;
    std::int32_t displacement = 0;
    bool narrow_address = false;
    std::uint8_t segment = 0;  // 0, 64, 65
    std::uint64_t immediate = 0;
    bool rex_w_only = true;

    struct Bytes {
        std::array<std::byte, 32> code{};
        std::size_t size = 0;          // with room for the longest immediate
        std::size_t displacement = 0;  // its offset, if it has 4 bytes; else 0
    };
    Bytes assemble() const;
};

struct Form {
    std::string name;       // "vaddps evex reg128 reg128 mem128 {k}"
    std::string extension;  // "AVX512EVEX"
    std::vector<Encoding> examples;
};

class FormTable {
  public:
    FormTable();
    const std::vector<Form>& forms() const { return forms_; }

  private:
    std::vector<Form> forms_;
};

// Empty for what does not take part: system calls, traps and the like.
std::string form_name(const decoder::Instruction& instruction);

std::optional<decoder::Instruction> decode(const Encoding& encoding, Address at);

// An example with other registers, addresses and immediates, of the same form.
Encoding vary(const Form& form, Random& random, Address at);

}  // namespace shadowprof::differential
