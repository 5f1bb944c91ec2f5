// Which instructions a case is made of.
#include <algorithm>
#include <cstring>

#include "cases.h"
#include "decoder/decoder.h"
#include "exceptions.h"

namespace shadowprof::differential {

using decoder::Instruction;

namespace {

// Code that may change does so often: its slots are taken by turns.
constexpr std::size_t slots_of_changing_code = 16;
constexpr std::size_t most_bytes_in_sequence = 400;

// The distance is the instruction's last byte, or its last four.
std::optional<Instruction> with_branch_distance(const Instruction& i, std::int64_t distance) {
    for (const std::size_t size : {1u, 4u}) {
        auto bytes = i.bytes;
        if (size >= i.length) continue;
        for (std::size_t n = 0; n < size; ++n)
            bytes[i.length - size + n] =
                static_cast<std::byte>(static_cast<std::uint64_t>(distance) >> 8 * n);
        const auto other = decoder::decode({bytes.data(), i.length}, i.address);
        if (other && other->mnemonic == i.mnemonic &&
            static_cast<std::int64_t>(other->target - other->end()) == distance)
            return other;
    }
    return {};
}

}  // namespace

// Every form has its share, and so has every extension, large or small. If extensions are given, it
// is one of theirs.
std::size_t Differential::pick_form(const std::vector<std::size_t>& extensions) {
    constexpr std::uint64_t enough_to_know = 8;
    const auto tries = extensions.empty() ? ~std::uint64_t{0} : 100;
    for (std::uint64_t n = 0;; ++n) {
        const bool is_free = extensions.empty() || n > tries;
        std::size_t form = 0;
        if (is_free && random_.chance(0.5)) {
            form = random_.below(forms_.forms().size());
        } else {
            const auto extension = is_free ? random_.below(by_extension_.size())
                                           : extensions[random_.below(extensions.size())];
            const auto& members = by_extension_[extension];
            form = members[random_.below(members.size())];
        }
        const auto& known = statistics_[form];
        const bool never_runs = known.executed == 0 && known.illegal >= enough_to_know;
        if (!never_runs) return form;
    }
}

void Differential::take_slot() {
    if (sequences_in_world_ == NativeCode::size / slot_size - 1) begin_world();
    const auto turn =
        world_->changes ? sequences_in_world_ % slots_of_changing_code : sequences_in_world_;
    ++sequences_in_world_;
    slot_ = NativeCode::begin + turn * slot_size;
    start_ = slot_ + code_in_slot;
    code_.fill(slot_, slot_size);
}

Address Differential::next_place() const {
    return steps_.empty() ? start_ : steps_.back().instruction.end();
}

bool Differential::make_sequence() {
    steps_.clear();
    inner_.clear();
    take_slot();
    const auto kind = random_.unit();
    const bool has_inner_branches = kind < 0.3;
    const std::size_t length = has_inner_branches ? 4 + random_.below(10)
                               : kind < 0.65      ? 1
                                                  : 2 + random_.below(5);
    // What one instruction of an extension leaves behind is seen by others of it, or by those that
    // save it.
    std::vector<std::size_t> extensions;
    if (length > 1 && random_.chance(0.3))
        for (unsigned n = 0; n < 2; ++n) extensions.push_back(random_.below(by_extension_.size()));

    while (steps_.size() < length && next_place() - start_ < most_bytes_in_sequence) {
        if (has_inner_branches && random_.chance(0.4)) {
            if (!add_inner_branch()) return false;
        } else {
            const bool may_branch = !has_inner_branches || steps_.size() + 1 == length;
            const auto before = steps_.size();
            if (!add_step(extensions, may_branch)) {
                if (steps_.empty()) return false;
                break;
            }
            if (steps_.size() > before && steps_.back().instruction.flow != decoder::Flow::next)
                break;
        }
    }
    end_ = next_place();
    if (!direct_inner_branches()) return false;
    std::vector<std::byte> bytes;
    for (const auto& step : steps_) {
        const auto encoding = step.instruction.encoding();
        bytes.insert(bytes.end(), encoding.begin(), encoding.end());
    }
    code_.place(start_, bytes);
    world_->code.forget_pages();
    return true;
}

bool Differential::add_step(const std::vector<std::size_t>& extensions, bool may_branch) {
    while (true) {
        const auto form = pick_form(extensions);
        const auto at = next_place();
        auto encoding = vary(forms_.forms()[form], random_, at);
        auto instruction = decode(encoding, at);
        if (!instruction) continue;
        const bool is_branch = instruction->flow != decoder::Flow::next;
        if (is_branch && !may_branch) continue;
        const auto* exception = exception_for(*instruction);
        if ((exception && exception->kind == Exception::Kind::not_run) ||
            loads_segment_register(*instruction) || saves_to_narrow_segment(*instruction) ||
            writes_base_that_is_lost(*instruction) || is_different_on_amd(*instruction)) {
            ++statistics_[form].excepted;
            return false;
        }
        if (is_rip_relative(*instruction)) {
            const auto target = operand_address(512);
            const auto layout = encoding.assemble();
            auto patched = layout;
            const auto displacement =
                static_cast<std::int32_t>(target.value - instruction->end().value);
            if (layout.displacement == 0) return false;
            std::memcpy(patched.code.data() + layout.displacement, &displacement, 4);
            instruction = decoder::decode({patched.code.data(), instruction->length}, at);
            if (!instruction) return false;
        }
        if (is_branch && instruction->target.value != 0) {
            // After the way back, or before the code; int3 is there.
            const auto before = static_cast<std::int64_t>(instruction->end() - start_);
            const std::int64_t distance =
                random_.chance(0.5) ? static_cast<std::int64_t>(20 + random_.below(80))
                                    : -before - static_cast<std::int64_t>(20 + random_.below(100));
            const auto patched = with_branch_distance(*instruction, distance);
            if (!patched) return false;
            instruction = patched;
        }
        steps_.push_back({form, *instruction});
        return true;
    }
}

bool Differential::add_bytes(std::initializer_list<unsigned> bytes) {
    std::array<std::byte, decoder::longest_instruction> code{};
    std::size_t size = 0;
    for (const auto byte : bytes) code[size++] = static_cast<std::byte>(byte);
    const auto instruction = decoder::decode({code.data(), size}, next_place());
    if (!instruction) return false;
    const auto known = by_name_.find(form_name(*instruction));
    if (known == by_name_.end()) return false;
    steps_.push_back({known->second, *instruction});
    return true;
}

// Indirect ones get their target from a lea before them.
bool Differential::add_inner_branch() {
    if (random_.chance(0.5)) {
        const auto form = direct_branches_[random_.below(direct_branches_.size())];
        const auto instruction =
            decode(vary(forms_.forms()[form], random_, next_place()), next_place());
        const auto* exception = instruction ? exception_for(*instruction) : nullptr;
        if (!instruction || exception || is_different_on_amd(*instruction)) return false;
        steps_.push_back({form, *instruction});
        inner_.push_back({steps_.size() - 1, steps_.size() - 1});
        return true;
    }
    constexpr unsigned rex_b = 0x41, push = 0x50;
    unsigned reg = 0;
    do {
        reg = static_cast<unsigned>(random_.below(16));
    } while (reg == decoder::rsp);
    const auto low = reg & 7, high = reg >> 3;
    if (!add_bytes({0x48 | high << 2, 0x8d, low << 3 | 5, 0, 0, 0, 0})) return false;
    const auto names_target = steps_.size() - 1;
    bool fine = true;
    switch (random_.below(6)) {
        case 0:  // jmp reg
            fine = high ? add_bytes({rex_b, 0xff, 0xe0 | low}) : add_bytes({0xff, 0xe0 | low});
            break;
        case 1:  // call reg
            fine = high ? add_bytes({rex_b, 0xff, 0xd0 | low}) : add_bytes({0xff, 0xd0 | low});
            break;
        default:
            fine = high ? add_bytes({rex_b, push | low}) : add_bytes({push | low});
            switch (random_.below(4)) {
                case 0:
                    fine = fine && add_bytes({0xff, 0x24, 0x24});  // jmp [rsp]
                    break;
                case 1:
                    fine = fine && add_bytes({0xff, 0x14, 0x24});  // call [rsp]
                    break;
                case 2:
                    fine =
                        fine && add_bytes({0xc2, static_cast<unsigned>(8 * random_.below(4)), 0});
                    break;
                default:
                    fine = fine && add_bytes({0xc3});
                    break;
            }
            break;
    }
    inner_.push_back({steps_.size() - 1, names_target});
    return fine;
}

// To any later instruction, or to the end; not between a lea and its branch, which might then find
// its own address.
bool Differential::direct_inner_branches() {
    const auto is_inside = [&](std::size_t step) {
        return std::any_of(inner_.begin(), inner_.end(), [&](const Inner& inner) {
            return inner.names_target < step && step <= inner.branch;
        });
    };
    for (const auto& inner : inner_) {
        auto to = inner.branch;
        do {
            to = inner.branch + 1 + random_.below(steps_.size() - inner.branch);
        } while (is_inside(to));
        const auto target = to == steps_.size() ? end_ : steps_[to].instruction.address;
        auto& instruction = steps_[inner.names_target].instruction;
        const auto distance = static_cast<std::int64_t>(target - instruction.end());
        if (inner.names_target == inner.branch) {
            const auto patched = with_branch_distance(instruction, distance);
            if (!patched) return false;
            instruction = *patched;
            continue;
        }
        const auto displacement = static_cast<std::int32_t>(distance);
        std::memcpy(instruction.bytes.data() + 3, &displacement, sizeof displacement);
        const auto patched = decoder::decode(instruction.encoding(), instruction.address);
        if (!patched) return false;
        instruction = *patched;
    }
    return true;
}

}  // namespace shadowprof::differential
