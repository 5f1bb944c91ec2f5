#include "report/model/assemble.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "decoder/decoder.h"
#include "model/renumber.h"
#include "profile/registry.h"
#include "profile/sample/sample_section.h"

namespace shadowprof::report {

namespace {

using trace::Block;
using InstructionMap =
    std::unordered_map<trace::Location, const decoder::Instruction*, trace::LocationHash>;

// The text with link-time addresses in it: the same in every run.
std::string text_at(decoder::Instruction i, std::uint64_t offset) {
    i.target.value += offset - i.address.value;
    i.address.value = offset;
    return decoder::text(i);
}

// The n-th "[…]" of an instruction's text.
std::string memory_text(const std::string& text, std::size_t n) {
    std::size_t at = text.find('[');
    while (n-- > 0 && at != text.npos) at = text.find('[', at + 1);
    if (at == text.npos) return "memory";
    return text.substr(at, text.find(']', at) + 1 - at);
}

std::string operand_text(const decoder::Instruction* i, const std::string& text,
                         std::size_t index) {
    if (!i || index >= i->operands().size()) return "operand " + std::to_string(index);
    const auto operands = i->operands();
    if (operands[index].kind == decoder::OperandKind::reg)
        return decoder::name(operands[index].reg);
    const auto memory_before =
        std::count_if(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(index),
                      [](const auto& o) { return o.kind == decoder::OperandKind::memory; });
    return memory_text(text, static_cast<std::size_t>(memory_before));
}

class Assembler : private PlaceTable {
  public:
    Assembler(RunFacts facts, const trace::BlockTable& blocks, const trace::ModuleTable& modules,
              Symbols& symbols, const KeepOptions& options)
        : blocks_(blocks),
          module_table_(modules),
          modules_(modules.all()),
          symbols_(symbols),
          options_(options) {
        static_cast<RunFacts&>(profile_) = std::move(facts);
        rank_modules();
    }

    Profile assemble(const profile::Hotlists& lists) {
        for (const auto& list : lists) profile_.sections.put(list->to_section(*this, options_));
        profile_.sections.put_in_order(profile::section_types());
        find_instructions();
        describe_locations();
        describe_operands();
        describe_arguments();
        sort_locations();
        drop_unused_modules(profile_);
        const auto defect = defect_of(profile_);
        SHADOWPROF_ASSERT(!defect, *defect);
        return std::move(profile_);
    }

  private:
    struct Key {
        trace::Location place;
        bool return_address = false;
        auto operator<=>(const Key&) const = default;
    };
    struct KeyHash {
        std::size_t operator()(const Key& k) const noexcept {
            return trace::hash_of(k.place) + k.return_address;
        }
    };

    // Modules are interned in the order in which a run met them; profiles list them by path.
    void rank_modules() {
        for (const auto& m : modules_) profile_.modules.push_back({m.path, m.build_id});
        rank_ = sort_modules(profile_.modules);
    }

    trace::Location ranked(trace::Location l) const override {
        l.module = trace::ModuleId{rank_.at(static_cast<std::uint32_t>(l.module))};
        return l;
    }

    LocationIndex index_of(const trace::Location& place, bool is_return_address) override {
        // What an interpreter executes is known by the line that calls.
        const bool is_behind_call = is_return_address && !module_table_.interpreted_at(place);
        const auto [entry, is_new] = indices_.try_emplace(
            Key{place, is_behind_call}, static_cast<LocationIndex>(places_.size()));
        if (is_new) places_.push_back(entry->first);
        return entry->second;
    }

    // Finds the instruction of every location in one pass over the blocks.
    void find_instructions() {
        for (const auto& key : places_) instructions_.emplace(key.place, nullptr);
        for (std::uint32_t id = 0; id < blocks_.size(); ++id) {
            const Block& block = blocks_.at(trace::BlockId{id});
            for (const auto& i : block.instructions)
                if (const auto wanted = instructions_.find(block.place_of(i));
                    wanted != instructions_.end())
                    wanted->second = &i;
        }
    }

    void describe_locations() {
        profile_.locations.reserve(places_.size());
        for (const auto& [place, return_address] : places_) {
            const auto& module = modules_.at(static_cast<std::uint32_t>(place.module));
            // The call before a return address may be the last instruction of its function.
            const auto looked_up = place.offset - (return_address ? 1 : 0);
            Location l;
            l.module = rank_.at(static_cast<std::uint32_t>(place.module));
            l.offset = place.offset;
            l.content = place.content;
            l.return_address = return_address;
            if (const auto interpreted = module_table_.interpreted_at(place)) {
                const auto& function = interpreted->function;
                l.function = function.name;
                l.function_offset = interpreted->begin.offset;
                l.file = function.file;
                l.line = function.first_line +
                         static_cast<std::uint32_t>(place.offset - interpreted->begin.offset);
                profile_.locations.push_back(std::move(l));
                continue;
            }
            if (const auto function = symbols_.function_at(module, looked_up)) {
                l.function = function->name;
                l.function_offset = function->begin;
            }
            auto source = symbols_.line_at(module, looked_up);
            l.file = std::move(source.file);
            l.line = source.line;
            l.inlined = std::move(source.inlined);
            const auto* instruction = instructions_.at(place);
            if (instruction && !return_address) l.text = text_at(*instruction, place.offset);
            profile_.locations.push_back(std::move(l));
        }
    }

    void describe_operands() {
        const auto text = [&](LocationIndex location, std::uint32_t operand) {
            return operand_text(instructions_.at(places_[location].place),
                                profile_.at(location).text, operand);
        };
        for (const auto& section : profile_.sections) section->name_operands(text);
    }

    // Profilers know registers. Of these, what holds a parameter is kept, as wide as that is.
    void describe_arguments() {
        auto* const samples = profile_.find<profile::SampleSection>();
        if (!samples) return;
        std::unordered_map<LocationIndex, std::vector<PassedParameter>> known;
        for (auto& e : samples->entries) {
            if (e.arguments.empty()) continue;
            const auto at = e.frames.back();
            const auto [passed, is_new] = known.try_emplace(at);
            if (is_new) {
                const auto& place = places_[at].place;
                passed->second = symbols_.parameters_at(
                    modules_.at(static_cast<std::uint32_t>(place.module)), place.offset);
                for (const auto& each : passed->second)
                    profile_.locations[at].parameters.push_back(each.parameter);
            }
            const auto registers = std::exchange(e.arguments, {});
            for (const auto& [parameter, number] : passed->second)
                e.arguments.push_back(registers.at(number) &
                                      (~std::uint64_t{0} >> (64 - parameter.bits)));
        }
    }

    void sort_locations() {
        const auto moved_to = put_in_order(profile_.locations, [&](auto a, auto b) {
            return std::pair(ranked(places_[a].place), places_[a].return_address) <
                   std::pair(ranked(places_[b].place), places_[b].return_address);
        });
        profile_.each_location([&](LocationIndex& i) { i = moved_to[i]; });
    }

    const trace::BlockTable& blocks_;
    const trace::ModuleTable& module_table_;
    const std::vector<trace::Module> modules_;
    Symbols& symbols_;
    const KeepOptions options_;
    Profile profile_;
    MovedTo rank_;  // of a ModuleId among the paths
    std::unordered_map<Key, LocationIndex, KeyHash> indices_;
    std::vector<Key> places_;  // by index, until sort_locations()
    InstructionMap instructions_;
};

}  // namespace

Profile assemble(RunFacts facts, const profile::Hotlists& hotlists, const trace::BlockTable& blocks,
                 const trace::ModuleTable& modules, Symbols& symbols, const KeepOptions& options) {
    return Assembler(std::move(facts), blocks, modules, symbols, options).assemble(hotlists);
}

}  // namespace shadowprof::report
