#include "emu/interpreter/extended_helpers.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/x86.h"
#include "emu/interpreter/core_helpers.h"
#include "emu/interpreter/extended_area.h"
#include "emu/interpreter/host_code.h"
#include "emu/interpreter/reencode.h"

namespace shadowprof::emu {

namespace {

using decoder::Instruction;
using decoder::Operand;
using decoder::OperandKind;
using decoder::RegisterKind;

// What a gather's or scatter's encoding says besides its operands. The opcodes come in pairs, the
// even one with 32-bit indices and the odd one with 64-bit indices; W makes 64-bit elements.
struct GatherShape {
    bool is_evex = false;
    unsigned index_size = 4, element_size = 4;
    unsigned vector_bytes = 16;
    unsigned elements() const { return vector_bytes / std::max(index_size, element_size); }
};

std::optional<GatherShape> shape_of(const Instruction& i) {
    const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(i.bytes[at]); };
    std::size_t at = 0;
    while (at + 5 < i.length && byte(at) != 0xc4 && byte(at) != 0x62) ++at;
    GatherShape shape;
    shape.is_evex = byte(at) == 0x62;
    const auto opcode = byte(at + (shape.is_evex ? 4 : 3));
    const bool gathers = 0x90 <= opcode && opcode <= 0x93;
    const bool scatters = 0xa0 <= opcode && opcode <= 0xa3;
    if (!gathers && !scatters) return {};
    const bool wide = byte(at + 2) & 0x80;
    shape.index_size = opcode & 1 ? 8 : 4;
    shape.element_size = wide ? 8 : 4;
    const auto length = shape.is_evex ? byte(at + 3) >> 5 & 3 : byte(at + 2) >> 2 & 1;
    shape.vector_bytes = 16u << length;
    return shape;
}

struct GatherOperands {
    const Operand* memory = nullptr;
    const Operand* data = nullptr;
    const Operand* mask = nullptr;
};

GatherOperands operands_of(const Instruction& i, bool is_evex) {
    GatherOperands found;
    for (const auto& operand : i.explicit_operands()) {
        if (operand.kind == OperandKind::memory)
            found.memory = &operand;
        else if (operand.is_write_mask || (!is_evex && found.data))
            found.mask = &operand;
        else
            found.data = &operand;
    }
    return found;
}

// EVEX instructions are illegal unless masks and the whole of thirty-two registers are switched.
bool has_state_for(bool is_evex) {
    constexpr std::uint64_t avx = 0x4, avx_512 = 0xe0;
    const auto wanted = is_evex ? avx | avx_512 : avx;
    return (switched_components() & wanted) == wanted;
}

// One element of a vector register.
struct Elements {
    ExtendedArea::Vector words;
    unsigned size;

    std::uint64_t get(unsigned n) const {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes() + n * size, size);
        return value;
    }
    std::uint64_t sign_extended(unsigned n) const {
        const auto value = get(n);
        if (size == 8) return value;
        return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(value)});
    }
    void set(unsigned n, std::uint64_t value) {
        std::memcpy(reinterpret_cast<std::byte*>(words.data()) + n * size, &value, size);
    }
    const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(words.data()); }
};

void clear_from(ExtendedArea::Vector& words, unsigned first_byte) {
    std::memset(reinterpret_cast<std::byte*>(words.data()) + first_byte, 0, 64 - first_byte);
}

std::uint64_t segment_base(const Core& core, const decoder::MemoryOperand& memory) {
    switch (memory.segment) {
        case decoder::Segment::fs:
            return core.fs_base;
        case decoder::Segment::gs:
            return core.gs_base;
        default:
            return 0;
    }
}

std::uint64_t segment_base(const Core& core, const Instruction& i) {
    for (const auto& operand : i.operands())
        if (operand.kind == OperandKind::memory) return segment_base(core, operand.memory);
    return 0;
}

// As the x87 unit keeps it: three bits of the first byte, and the second.
std::uint16_t packed_opcode(const Instruction& i) {
    const auto opcode = x87_opcode(i);
    return opcode ? static_cast<std::uint16_t>((opcode->first & 7) << 8 | opcode->second) : 0;
}

constexpr std::size_t x87_status_at = 2, x87_opcode_at = 6, x87_instruction_at = 8,
                      x87_operand_at = 16;

// Older processors remember opcode and operand of every instruction, newer ones only of those that
// raise an unmasked exception. One instruction shows which kind this processor is.
struct X87Memory {
    bool opcode = false, operand = false;
};

const X87Memory& x87_remembers_always() {
    static const auto memory = [] {
        alignas(64) std::byte bytes[512] = {};
        const float value = 1;
        std::uint16_t control = 0;
        asm volatile("fnstcw %1; fninit; flds %2; fxsave64 %0; fninit; fldcw %1"
                     : "+m"(bytes), "+m"(control)
                     : "m"(value));
        ExtendedArea area(bytes);
        return X87Memory{area.get<std::uint16_t>(x87_opcode_at) != 0,
                         area.get<std::uint64_t>(x87_operand_at) != 0};
    }();
    return memory;
}

std::optional<Address> first_inaccessible(MemoryView& view, Address at, unsigned size,
                                          bool writes) {
    for (const auto byte : {at, at + (size - 1)}) {
        const auto& page = view.page(byte);
        if (writes ? page.writable : page.readable) continue;
        return byte == at ? at : Address{page.address};
    }
    return {};
}

void fail(Core* core, Address at) {
    core->helper_failed = 1;
    core->fault_address = at.value;
}

}  // namespace

void fetch_page(Core* core, std::uint64_t address) noexcept {
    core->owner->view().page({address});
    core->table = core->owner->view().table();
}

bool is_valid_gather(const Instruction& i) {
    const auto shape = shape_of(i);
    if (!shape || !has_state_for(shape->is_evex)) return false;
    const auto [memory, data, mask] = operands_of(i, shape->is_evex);
    if (!memory || !data || !mask) return false;
    const auto index = memory->memory.index.number;
    if (shape->is_evex) return memory->writes || data->reg.number != index;
    return data->reg.number != index && mask->reg.number != index &&
           data->reg.number != mask->reg.number;
}

void gather_or_scatter(Core* core, std::uint64_t argument) noexcept {
    const auto& i = *std::bit_cast<const Instruction*>(argument);
    core->helper_failed = 0;
    const auto shape = *shape_of(i);
    auto& view = core->owner->view();
    ExtendedArea area(core->extended);

    const auto operands = operands_of(i, shape.is_evex);
    const auto *memory = operands.memory, *data = operands.data, *mask = operands.mask;
    const bool scatters = memory->writes;
    const auto& m = memory->memory;
    const Elements indices{area.vector(m.index.number), shape.index_size};
    Elements values{area.vector(data->reg.number), shape.element_size};
    Elements vector_mask{{}, shape.element_size};
    std::uint64_t bit_mask = 0;
    if (shape.is_evex)
        bit_mask = area.mask(mask->reg.number);
    else
        vector_mask.words = area.vector(mask->reg.number);
    const auto top_bit = 8 * shape.element_size - 1;

    const auto base =
        (m.base ? core->general[m.base.number] : 0) + static_cast<std::uint64_t>(m.displacement);
    const auto segment = segment_base(*core, m);
    const auto write_back = [&] {
        const auto width = shape.vector_bytes;
        if (!scatters) area.set_vector(data->reg.number, values.words, width);
        if (shape.is_evex)
            area.set_mask(mask->reg.number, bit_mask);
        else
            area.set_vector(mask->reg.number, vector_mask.words, width);
    };

    const auto size = shape.elements() * shape.element_size;
    // When a gather faults, AMD's processors leave unchanged the elements that they did not reach.
    const bool leaves_the_rest = !shape.is_evex && __builtin_cpu_is("amd");
    if (!shape.is_evex && !leaves_the_rest) {
        // This happens even if the first element faults.
        for (unsigned n = 0; n < shape.vector_bytes / shape.element_size; ++n)
            vector_mask.set(n, vector_mask.get(n) >> top_bit & 1 ? ~std::uint64_t{0} : 0);
        clear_from(vector_mask.words, shape.vector_bytes);
    }

    for (unsigned n = 0; n < shape.elements(); ++n) {
        const bool wanted = shape.is_evex ? bit_mask >> n & 1 : vector_mask.get(n) >> top_bit & 1;
        if (wanted) {
            auto at = base + indices.sign_extended(n) * m.scale;
            if (m.address_bits == 32) at &= 0xffffffffu;
            const Address address{at + segment};
            std::uint64_t value = values.get(n);
            const auto bytes =
                std::as_writable_bytes(std::span{&value, 1}).first(shape.element_size);
            if (const auto fault =
                    first_inaccessible(view, address, shape.element_size, scatters)) {
                write_back();
                fail(core, *fault);
                break;
            }
            if (scatters)
                view.write(address, bytes);
            else
                view.read(address, bytes);
            if (!scatters) {
                values.set(n, value);
                if (!leaves_the_rest) clear_from(values.words, shape.vector_bytes);
            }
        }
        bit_mask &= ~(std::uint64_t{1} << n);
        if (!shape.is_evex) vector_mask.set(n, 0);
    }
    if (!core->helper_failed) {
        if (!scatters) clear_from(values.words, size);
        bit_mask = 0;
        vector_mask.words = {};
        write_back();
    }
    core->table = view.table();
    if (view.code_changed()) core->code_changed = 1;
}

void clear_line(Core* core, std::uint64_t argument) noexcept {
    const auto& i = *std::bit_cast<const Instruction*>(argument);
    core->helper_failed = 0;
    auto& view = core->owner->view();
    auto at = core->general[decoder::rax] & ~std::uint64_t{cache_line - 1};
    if (i.operands()[0].bits == 32) at &= 0xffffffffu;
    if (const auto fault = first_inaccessible(view, Address{at}, cache_line, true)) {
        fail(core, *fault);
        return;
    }
    view.write(Address{at}, std::array<std::byte, cache_line>{});
    core->table = view.table();
    if (view.code_changed()) core->code_changed = 1;
}

void restore_x87_pointers(Core* core, std::uint64_t) noexcept {
    ExtendedArea area(core->extended);
    if (!(area.present() & 1)) return;
    const auto* instruction = area.get<const std::uint8_t*>(x87_instruction_at);
    if (instruction < core->code_begin || instruction >= core->code_end) return;
    const auto* guest = core->owner->instruction_of(instruction);
    if (!guest) return;
    area.set(x87_instruction_at, guest->address.value);

    constexpr std::uint16_t exception_summary = 0x80;
    const bool raised = area.get<std::uint16_t>(x87_status_at) & exception_summary;
    const auto& host = x87_remembers_always();
    if (host.opcode || raised) area.set(x87_opcode_at, packed_opcode(*guest));
    const bool has_operand = x87_remembers_operand(*guest);
    if (!host.operand && !(raised && has_operand)) return;

    const auto* operand = area.get<const std::byte*>(x87_operand_at);
    const auto* substitutes_end = core->substitutes + substitute_pages * page_size;
    std::optional<Address> address;
    if (core->substitutes <= operand && operand < substitutes_end)
        address =
            Address{core->slow_address} + static_cast<std::uint64_t>(operand - core->resolved_to);
    else
        address = core->owner->view().guest_address_of(operand);
    // An operand of an earlier instruction is not in a segment: see BlockCompiler::computing.
    if (address)
        area.set(x87_operand_at, address->value - (has_operand ? segment_base(*core, *guest) : 0));
}

}  // namespace shadowprof::emu
