#include "emu/translator/kept/kept_units.h"

#include <algorithm>
#include <cstring>

#include "base/sections.h"
#include "emu/tuning.h"

namespace shadowprof::emu::translator {

std::unique_ptr<const KeptUnits> KeptUnits::read(const std::string& name, const KeptFacts& facts) {
    std::unique_ptr<const KeptUnits> units{new KeptUnits{name, facts}};
    return units->is_sound_ ? std::move(units) : nullptr;
}

KeptUnits::KeptUnits(const std::string& name, const KeptFacts& facts) : file_(name) {
    if (!file_.is_sound()) return;
    auto in = file_.sections();
    if (in.take_one<KeptFacts>() != facts) return;
    units_ = in.take<KeptUnit>();
    code_ = in.take<std::uint8_t>();
    marks_ = in.take<std::uint8_t>();
    blocks_of_units_ = in.take<std::uint32_t>();
    exits_ = in.take<KeptExit>();
    relocations_ = in.take<Relocation>();
    blocks_ = in.take<KeptBlock>();
    instructions_ = in.take<std::uint32_t>();
    shapes_ = in.take<decoder::Instruction>();
    slots_ = in.take<trace::Slot>();
    operands_ = read_operand_lists(in);
    is_sound_ = in.is_sound();
}

const KeptUnit* KeptUnits::find(std::uint64_t offset, Version version) const {
    const auto key = KeptUnit{.offset = offset, .version = version}.key();
    const auto found = std::ranges::lower_bound(units_, key, {}, &KeptUnit::key);
    return found != units_.end() && found->key() == key ? &*found : nullptr;
}

KeptParts KeptUnits::parts_of(const KeptUnit& unit) const {
    return {.code = code_.subspan(unit.first_code, unit.size),
            .marks = marks_.subspan(unit.first_mark, unit.marks),
            .blocks = blocks_of_units_.subspan(unit.first_block, unit.blocks),
            .exits = exits_.subspan(unit.first_exit, unit.exits),
            .relocations = relocations_.subspan(unit.first_relocation, unit.relocations)};
}

trace::Block KeptUnits::block_at(std::uint32_t number, std::uint64_t bias,
                                 trace::ModuleId module) const {
    const auto& kept = blocks_[number];
    trace::Block block;
    block.exit = kept.exit;
    block.start = {kept.offset + bias};
    block.place = {module, kept.offset, 0};
    block.instructions.reserve(kept.instructions);
    auto at = block.start;
    for (const auto shape : instructions_.subspan(kept.first_instruction, kept.instructions)) {
        auto& instruction = block.instructions.emplace_back(shapes_[shape]);
        instruction.address = at;
        instruction.first_operand =
            operands_[reinterpret_cast<std::uintptr_t>(instruction.first_operand)];
        at = instruction.end();
    }
    if (kept.target != 0) block.instructions.back().target = {kept.target + bias};
    const auto slots = slots_.subspan(kept.first_slot, kept.slots);
    const auto accesses = slots_.subspan(kept.first_slot + kept.slots, kept.accesses);
    block.slots.assign(slots.begin(), slots.end());
    block.accesses.assign(accesses.begin(), accesses.end());
    return block;
}

std::uint32_t KeptUnitsWriter::number_of_shape(decoder::Instruction shape, std::uint64_t list) {
    shape.address = shape.target = {};
    shape.first_operand = reinterpret_cast<const decoder::Operand*>(list);
    const auto hash =
        checksum_of({reinterpret_cast<const char*>(&shape), sizeof shape}) & ~std::uint64_t{0} >> 1;
    auto& number = known_shapes_[hash];
    if (number == 0 || std::memcmp(&shapes_[number - 1], &shape, sizeof shape) != 0) {
        shapes_.push_back(shape);
        number = static_cast<std::uint32_t>(shapes_.size());
    }
    return number - 1;
}

std::uint32_t KeptUnitsWriter::add(const trace::Block& block, std::uint64_t bias) {
    auto& number = known_blocks_[block.place.offset];
    if (number != 0) return number - 1;
    const auto target = block.last().target.value;
    blocks_.push_back({.offset = block.place.offset,
                       .target = target == 0 ? 0 : target - bias,
                       .first_instruction = static_cast<std::uint32_t>(instructions_.size()),
                       .first_slot = static_cast<std::uint32_t>(slots_.size()),
                       .instructions = static_cast<std::uint16_t>(block.instructions.size()),
                       .slots = static_cast<std::uint16_t>(block.slots.size()),
                       .accesses = static_cast<std::uint16_t>(block.accesses.size()),
                       .exit = block.exit});
    for (const auto& instruction : block.instructions)
        instructions_.push_back(
            number_of_shape(instruction, operands_.number_of(instruction.operands())));
    slots_.insert(slots_.end(), block.slots.begin(), block.slots.end());
    slots_.insert(slots_.end(), block.accesses.begin(), block.accesses.end());
    number = static_cast<std::uint32_t>(blocks_.size());
    return number - 1;
}

std::uint32_t KeptUnitsWriter::add(const KeptUnits& from, std::uint32_t block) {
    const auto* const known = known_blocks_.find(from.block(block).offset);
    return known && *known ? *known - 1 : add(from.block_at(block, 0, {}), 0);
}

void KeptUnitsWriter::add(KeptUnit about, const KeptParts& parts) {
    if (!about.was_executed && size() >= tuning::largest_with_guesses) return;
    auto& number = known_units_[about.key()];
    if (number != 0) return;
    const auto append = [](auto& all, auto added, auto& first, auto& count) {
        first = static_cast<std::uint32_t>(all.size());
        count = static_cast<std::remove_reference_t<decltype(count)>>(added.size());
        all.insert(all.end(), added.begin(), added.end());
    };
    append(code_, parts.code, about.first_code, about.size);
    append(marks_, parts.marks, about.first_mark, about.marks);
    append(blocks_of_units_, parts.blocks, about.first_block, about.blocks);
    append(exits_, parts.exits, about.first_exit, about.exits);
    append(relocations_, parts.relocations, about.first_relocation, about.relocations);
    units_.push_back(about);
    number = static_cast<std::uint32_t>(units_.size());
}

void KeptUnitsWriter::add_rest_of(const KeptUnits& before, bool executed,
                                  const std::function<bool(std::uint64_t offset)>& is_executed) {
    if (executed) make_room(before.code_.size(), before.marks_.size());
    std::vector<std::uint32_t> blocks;
    for (auto unit : before.units_) {
        unit.was_executed = unit.was_executed || is_executed(unit.offset);
        if (unit.was_executed != executed) continue;
        if (const auto* const known = known_units_.find(unit.key()); known && *known) continue;
        auto parts = before.parts_of(unit);
        blocks.clear();
        for (const auto block : parts.blocks) blocks.push_back(add(before, block));
        parts.blocks = blocks;
        add(unit, parts);
    }
}

void KeptUnitsWriter::write(const std::string& name, const KeptFacts& facts) {
    std::ranges::sort(units_, {}, &KeptUnit::key);
    SectionWriter out;
    out.keep_one(facts);
    out.add(std::span<const KeptUnit>{units_});
    out.add(std::span<const std::uint8_t>{code_});
    out.add(std::span<const std::uint8_t>{marks_});
    out.add(std::span<const std::uint32_t>{blocks_of_units_});
    out.add(std::span<const KeptExit>{exits_});
    out.add(std::span<const Relocation>{relocations_});
    out.add(std::span<const KeptBlock>{blocks_});
    out.add(std::span<const std::uint32_t>{instructions_});
    out.add(std::span<const decoder::Instruction>{shapes_});
    out.add(std::span<const trace::Slot>{slots_});
    operands_.write(out);
    write_code_file(name, out);
}

}  // namespace shadowprof::emu::translator
