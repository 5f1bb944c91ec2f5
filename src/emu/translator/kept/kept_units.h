// The translated units of one program or library, as a file keeps them: without the places at which
// this run happens to have the module and the code cache (relocation.h). The file is mapped, and a
// unit is read when its code is wanted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/flat_map.h"
#include "emu/common/file_identity.h"
#include "emu/common/operand_lists.h"
#include "emu/translator/kept/code_file.h"
#include "emu/translator/relocation.h"
#include "emu/translator/unit.h"

namespace shadowprof::emu::translator {

// What must be as it was when the units were made.
struct KeptFacts {
    FileIdentity file{};
    std::uint64_t device = 0, inode = 0;          // as the program's mappings name the file
    std::uint32_t tables = 0;                     // their place
    std::uint32_t leave = 0, call = 0, kept = 0;  // places in an arena's fixed code
    bool operator==(const KeptFacts&) const = default;
};

// Targets are as the file's code has its addresses; other places are distances from the unit's
// begin.
struct KeptExit {
    static constexpr std::uint32_t nowhere = ~std::uint32_t{0};
    std::uint64_t target = 0;
    std::uint32_t jump = nowhere, id = nowhere;
    std::uint32_t blocks = 0;  // of its segment: the unit's first ones
    ExitKind kind{};
};

// `First` means the place in the file's list.
struct KeptUnit {
    std::uint64_t offset = 0;  // of the guest's code, in its file
    std::uint32_t first_code = 0, first_mark = 0, first_block = 0, first_exit = 0,
                  first_relocation = 0;
    std::uint32_t size = 0, marks = 0;
    std::uint16_t blocks = 0, exits = 0, relocations = 0;
    // Of its begin: some jumps must not cross the end of a cache line.
    std::uint8_t place_in_line = 0;
    Version version{};
    bool follows = false;       // a way that threads were seen to go
    bool was_executed = false;  // or is only likely to be

    std::uint64_t key() const { return offset * version_count + static_cast<std::size_t>(version); }
};

struct KeptBlock {
    std::uint64_t offset = 0;
    std::uint64_t target = 0;  // of its last instruction
    std::uint32_t first_instruction = 0, first_slot = 0;
    std::uint16_t instructions = 0, slots = 0, accesses = 0;
    trace::BlockExit exit{};
};

// What a unit consists of.
struct KeptParts {
    std::span<const std::uint8_t> code, marks;
    std::span<const std::uint32_t> blocks;  // numbers in the same file
    std::span<const KeptExit> exits;
    std::span<const Relocation> relocations;
};

class KeptUnits {
  public:
    // Nothing if the file is not there or not to be believed, or if the facts are others.
    static std::unique_ptr<const KeptUnits> read(const std::string& name, const KeptFacts& facts);

    std::span<const KeptUnit> all() const { return units_; }  // in order of their keys
    const KeptUnit* find(std::uint64_t offset, Version version) const;
    KeptParts parts_of(const KeptUnit& unit) const;
    const KeptBlock& block(std::uint32_t number) const { return blocks_[number]; }
    // … in a module that is mapped with this bias.
    trace::Block block_at(std::uint32_t number, std::uint64_t bias, trace::ModuleId module) const;

  private:
    friend class KeptUnitsWriter;
    KeptUnits(const std::string& name, const KeptFacts& facts);

    CodeFile file_;
    bool is_sound_ = false;
    std::span<const KeptUnit> units_;
    std::span<const std::uint8_t> code_, marks_;
    std::span<const std::uint32_t> blocks_of_units_, instructions_;
    std::span<const KeptExit> exits_;
    std::span<const Relocation> relocations_;
    std::span<const KeptBlock> blocks_;
    // Instructions without their addresses, of which there are a tenth as many; the first operand
    // is the number of a list.
    std::span<const decoder::Instruction> shapes_;
    std::span<const trace::Slot> slots_;
    std::vector<const decoder::Operand*> operands_;
};

class KeptUnitsWriter {
  public:
    // So many bytes more will come: most of a file, which may be as large as all else that we have.
    void make_room(std::size_t code, std::size_t marks) {
        code_.reserve(code_.size() + code);
        marks_.reserve(marks_.size() + marks);
    }
    // Of this module, whose addresses are those in its file and this bias. Returns its number.
    std::uint32_t add(const trace::Block& block, std::uint64_t bias);
    // Unless there is one of this code and version, or too much is there for what was never
    // executed. `about` says what the parts do not.
    void add(KeptUnit about, const KeptParts& parts);
    // What was kept before, of code that was executed or not; now or then.
    void add_rest_of(const KeptUnits& before, bool executed,
                     const std::function<bool(std::uint64_t offset)>& is_executed);
    // Bytes, roughly.
    std::size_t size() const {
        return code_.size() + marks_.size() + exits_.size() * sizeof(KeptExit) +
               blocks_.size() * sizeof(KeptBlock) + slots_.size() * sizeof(trace::Slot);
    }

    void write(const std::string& name, const KeptFacts& facts);

  private:
    std::uint32_t add(const KeptUnits& from, std::uint32_t block);
    std::uint32_t number_of_shape(decoder::Instruction shape, std::uint64_t list);

    std::vector<KeptUnit> units_;
    std::vector<std::uint8_t> code_, marks_;
    std::vector<std::uint32_t> blocks_of_units_, instructions_;
    std::vector<KeptExit> exits_;
    std::vector<Relocation> relocations_;
    std::vector<KeptBlock> blocks_;
    std::vector<decoder::Instruction> shapes_;
    std::vector<trace::Slot> slots_;
    OperandLists operands_;
    // Numbers, plus 1: of units by key, of blocks by offset, of shapes by their hash.
    FlatMap<std::uint32_t> known_units_, known_blocks_, known_shapes_;
};

}  // namespace shadowprof::emu::translator
