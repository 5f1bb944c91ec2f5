// What GuestCode knows, written for a later run and restored there. Code is of the same files if
// these have the same identity, and it is at the same places if they are mapped there, which
// GuestCode looks at anyway.

#include <sys/stat.h>

#include <algorithm>
#include <unordered_map>

#include "decoder/decoder.h"
#include "emu/common/guest_code.h"

namespace shadowprof::emu {

namespace {

// A file that has other contents has another identity.
struct FileIdentity {
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t modified = 0, modified_ns = 0, changed = 0, changed_ns = 0;
    bool operator==(const FileIdentity&) const = default;
};

std::optional<FileIdentity> identity_of(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) return {};
    return FileIdentity{.device = status.st_dev,
                        .inode = status.st_ino,
                        .size = static_cast<std::uint64_t>(status.st_size),
                        .modified = status.st_mtim.tv_sec,
                        .modified_ns = status.st_mtim.tv_nsec,
                        .changed = status.st_ctim.tv_sec,
                        .changed_ns = status.st_ctim.tv_nsec};
}

struct KeptBlock {
    Address start;
    std::uint64_t offset, content;
    std::uint32_t module;
    std::uint16_t instructions, slots, accesses;
    trace::BlockExit exit;
};

std::vector<char> bytes_of(const std::string& text) {
    return {text.begin(), text.end()};
}
std::string text_of(std::span<const char> bytes) {
    return {bytes.begin(), bytes.end()};
}

// Each list of operands once.
class OperandLists {
  public:
    std::uint64_t number_of(std::span<const decoder::Operand> list) {
        const auto [known, is_new] = numbers_.try_emplace(list.data(), sizes_.size());
        if (is_new) {
            sizes_.push_back(static_cast<std::uint8_t>(list.size()));
            operands_.insert(operands_.end(), list.begin(), list.end());
        }
        return known->second;
    }
    void write(SectionWriter& out) {
        out.keep(std::move(sizes_));
        out.keep(std::move(operands_));
    }

  private:
    std::unordered_map<const decoder::Operand*, std::uint64_t> numbers_;
    std::vector<std::uint8_t> sizes_;
    std::vector<decoder::Operand> operands_;
};

std::vector<const decoder::Operand*> read_operand_lists(SectionReader& in) {
    const auto sizes = in.take<std::uint8_t>();
    auto operands = in.take<decoder::Operand>();
    std::vector<const decoder::Operand*> lists;
    for (const auto size : sizes) {
        if (size > operands.size()) return {};
        lists.push_back(decoder::shared(operands.first(size)).data());
        operands = operands.subspan(size);
    }
    return lists;
}

}  // namespace

bool GuestCode::write(SectionWriter& out, const std::vector<bool>& kept) const {
    if (!maps_ || plan_.choice() || plan_.functions() || plan_.has(trace::Capture::error_before) ||
        !distrusted_pages_.empty())
        return false;
    std::vector<FixedCode> fixed;
    std::vector<FileIdentity> identities;
    std::vector<std::uint32_t> lengths;
    std::string paths;
    for (const auto& [begin, code] : fixed_code_) {
        const auto* const mapping = maps_->mapping_at(begin);
        const auto identity = mapping ? identity_of(mapping->path) : std::nullopt;
        if (!identity) return false;
        fixed.push_back(code);
        identities.push_back(*identity);
        lengths.push_back(static_cast<std::uint32_t>(mapping->path.size()));
        paths += mapping->path;
    }
    out.keep(std::move(fixed));
    out.keep(std::move(identities));
    out.keep(std::move(lengths));
    out.keep(bytes_of(paths));

    const auto modules = modules_.all();
    std::string names;
    for (const auto& module : modules) names += module.path + '\n' + module.build_id + '\n';
    out.keep(bytes_of(names));

    OperandLists operands;
    std::vector<KeptBlock> blocks;
    std::vector<decoder::Instruction> instructions;
    std::vector<trace::Slot> slots;
    for (std::uint32_t n = 0; n < blocks_.size(); ++n) {
        if (n >= kept.size() || !kept[n]) continue;
        const auto& block = blocks_.at(trace::BlockId{n});
        blocks.push_back({.start = block.start,
                          .offset = block.place.offset,
                          .content = block.place.content,
                          .module = static_cast<std::uint32_t>(block.place.module),
                          .instructions = static_cast<std::uint16_t>(block.instructions.size()),
                          .slots = static_cast<std::uint16_t>(block.slots.size()),
                          .accesses = static_cast<std::uint16_t>(block.accesses.size()),
                          .exit = block.exit});
        slots.insert(slots.end(), block.slots.begin(), block.slots.end());
        slots.insert(slots.end(), block.accesses.begin(), block.accesses.end());
        for (auto instruction : block.instructions) {
            const auto number = operands.number_of(instruction.operands());
            instruction.first_operand = reinterpret_cast<const decoder::Operand*>(number);
            instructions.push_back(instruction);
        }
    }
    out.keep(std::move(blocks));
    out.keep(std::move(instructions));
    out.keep(std::move(slots));
    operands.write(out);

    return true;
}

std::optional<std::vector<trace::BlockId>> GuestCode::restore(SectionReader& in) {
    const auto fixed = in.take<FixedCode>();
    const auto identities = in.take<FileIdentity>();
    const auto lengths = in.take<std::uint32_t>();
    auto paths = in.take<char>();
    auto names = text_of(in.take<char>());
    const auto blocks = in.take<KeptBlock>();
    auto instructions = in.take<decoder::Instruction>();
    auto slots = in.take<trace::Slot>();
    const auto operands = read_operand_lists(in);
    if (!in.is_sound() || !by_address_.empty() || !distrusted_pages_.empty()) return {};
    for (std::size_t n = 0; n < fixed.size(); ++n) {
        if (identity_of(text_of(paths.first(lengths[n]))) != identities[n]) return {};
        paths = paths.subspan(lengths[n]);
        const auto there = first_fixed_code_in(fixed[n].range);
        if (there != fixed_code_.end() && there->first < fixed[n].range.end &&
            !there->second.is_of_same_file(fixed[n]))
            return {};
    }
    for (const auto& code : fixed) know_as_fixed(code);

    std::vector<trace::ModuleId> modules;
    while (!names.empty()) {
        const auto path = names.find('\n'), build_id = names.find('\n', path + 1);
        modules.push_back(
            modules_.intern({names.substr(0, path), names.substr(path + 1, build_id - path - 1)}));
        names.erase(0, build_id + 1);
    }
    std::vector<trace::BlockId> restored;
    entries_.make_room_for(blocks.size());
    for (const auto& kept : blocks) {
        trace::Block block;
        block.exit = kept.exit;
        block.start = kept.start;
        block.place = {modules[kept.module], kept.offset, kept.content};
        const auto own = instructions.first(kept.instructions);
        block.instructions.assign(own.begin(), own.end());
        for (auto& instruction : block.instructions)
            instruction.first_operand =
                operands[reinterpret_cast<std::uintptr_t>(instruction.first_operand)];
        const auto of_values = slots.first(kept.slots);
        const auto of_accesses = slots.subspan(kept.slots, kept.accesses);
        block.slots.assign(of_values.begin(), of_values.end());
        block.accesses.assign(of_accesses.begin(), of_accesses.end());
        instructions = instructions.subspan(kept.instructions);
        slots = slots.subspan(kept.slots + kept.accesses);
        const auto& published = blocks_.publish(std::move(block));
        entries_[kept.start.value] = &(by_address_[kept.start] = {&published, false});
        restored.push_back(published.id);
    }
    return restored;
}

}  // namespace shadowprof::emu
