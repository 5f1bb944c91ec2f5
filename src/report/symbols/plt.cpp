#include "report/symbols/plt.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "decoder/decoder.h"

namespace shadowprof::report {

namespace {

// The address, if this is a jump through memory at a fixed address.
std::optional<std::uint64_t> slot_of(const decoder::Instruction& i) {
    if (i.flow != decoder::Flow::indirect_jump) return {};
    for (const auto& operand : i.explicit_operands())
        if (operand.kind == decoder::OperandKind::memory && operand.memory.is_rip_relative())
            return i.end().value + static_cast<std::uint64_t>(operand.memory.displacement);
    return {};
}

// Lazily resolved stubs push the index of their relocation and jump to the resolver.
std::optional<std::uint64_t> pushed_index(const decoder::Instruction& i) {
    if (i.flow != decoder::Flow::next || i.explicit_count != 1) return {};
    const auto& operand = i.explicit_operands().front();
    if (operand.kind != decoder::OperandKind::immediate) return {};
    return operand.immediate;
}

std::string name_in(const std::unordered_map<std::uint64_t, std::string>& names,
                    std::uint64_t key) {
    const auto found = names.find(key);
    return found == names.end() ? std::string() : found->second;
}

}  // namespace

std::vector<Function> plt_stubs(const ElfImage& image, const FunctionTable& functions) {
    std::unordered_map<std::uint64_t, std::string> by_slot;
    std::unordered_map<std::uint64_t, std::string> by_index;
    for (const auto& r : image.relocations()) {
        std::string target = r.symbol;
        if (target.empty()) {
            const Function* resolver = functions.find(r.addend);
            target = resolver ? resolver->symbol : std::string();
        }
        if (target.empty()) continue;
        target += "@plt";
        if (r.plt_index) by_index.emplace(*r.plt_index, target);
        by_slot.emplace(r.slot, std::move(target));
    }

    std::vector<Function> stubs;
    for (const auto& section : image.sections()) {
        if (!section.name.starts_with(".plt") && section.name != ".iplt") continue;
        const auto& header = section.header;
        const auto stub_size = std::clamp<std::uint64_t>(header.sh_entsize, 8, 64);
        const auto code = image.bytes(header.sh_addr, header.sh_size);
        for (std::uint64_t at = 0; at < code.size(); at += stub_size) {
            const auto size = std::min<std::uint64_t>(stub_size, code.size() - at);
            Function stub{{}, header.sh_addr + at, header.sh_addr + at + size};
            std::span<const std::byte> rest{code.data() + at, size};
            for (Address where{stub.begin}; stub.symbol.empty();) {
                const auto i = decoder::decode(rest, where);
                if (!i) break;
                if (const auto slot = slot_of(*i)) stub.symbol = name_in(by_slot, *slot);
                if (const auto index = pushed_index(*i)) stub.symbol = name_in(by_index, *index);
                where = i->end();
                rest = rest.subspan(i->length);
            }
            if (stub.symbol.empty()) stub.symbol = section.name;
            stubs.push_back(std::move(stub));
        }
    }
    return stubs;
}

}  // namespace shadowprof::report
