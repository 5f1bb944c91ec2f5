#include "report/model/assemble.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "decoder/decoder.h"
#include "report/model/location_indices.h"
#include "report/model/renumber.h"

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

ValueKind kind_of(std::uint8_t capture) {
    switch (static_cast<trace::Capture>(capture)) {
        case trace::Capture::memory_addresses:
            return ValueKind::address;
        case trace::Capture::loaded_values:
            return ValueKind::loaded;
        default:
            return ValueKind::register_;
    }
}

class Assembler {
  public:
    Assembler(RunFacts facts, const trace::BlockTable& blocks, const trace::ModuleTable& modules,
              Symbols& symbols, const AssembleOptions& options)
        : blocks_(blocks), modules_(modules.all()), symbols_(symbols), options_(options) {
        static_cast<RunFacts&>(profile_) = std::move(facts);
        rank_modules();
    }

    Profile assemble(const profile::Hotlists& lists) {
        if (lists.stacks) add(*lists.stacks);
        if (lists.paths) add(*lists.paths);
        if (lists.edges) add(*lists.edges);
        if (lists.calls) add(*lists.calls);
        if (lists.methods) add(*lists.methods);
        if (lists.values) add(*lists.values);
        if (lists.latencies) add(*lists.latencies);
        find_instructions();
        end_paths();
        describe_locations();
        describe_operands();
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

    // Sorts by what does not depend on the run.
    trace::Location ranked(trace::Location l) const {
        l.module = trace::ModuleId{rank_.at(static_cast<std::uint32_t>(l.module))};
        return l;
    }

    LocationIndex index_of(const trace::Location& place, bool return_address = false) {
        const auto [entry, is_new] = indices_.try_emplace(
            Key{place, return_address}, static_cast<LocationIndex>(places_.size()));
        if (is_new) places_.push_back(entry->first);
        return entry->second;
    }

    // The strongest entries in the order of the file; `unknown` takes the count of the others.
    template <class Entry, class Count, class Less>
    std::vector<const Entry*> strongest(const std::vector<Entry>& entries, Count count,
                                        Less identity_less) const {
        std::vector<const Entry*> order(entries.size());
        std::transform(entries.begin(), entries.end(), order.begin(),
                       [](const Entry& e) { return &e; });
        const auto kept =
            options_.limit == 0 ? order.size() : std::min(options_.limit, order.size());
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept),
                          order.end(), [&](const Entry* a, const Entry* b) {
                              if (count(*a) != count(*b)) return count(*a) > count(*b);
                              return identity_less(*a, *b);
                          });
        order.resize(kept);
        return order;
    }

    static constexpr auto count_of_entry = [](const auto& e) { return e.statistics.count; };

    template <class Entry, class Count>
    static void move_rest_to_unknown(Totals& totals, const std::vector<Entry>& kept, Count count) {
        std::uint64_t known = 0;
        for (const auto& e : kept) known += count(e);
        SHADOWPROF_ASSERT(known <= totals.total, "a hotlist has more in it than its total");
        totals.unknown = totals.total - known;
    }
    template <class From, class To, class Count>
    static void account_for_dropped(const From& from, To& to, Count count) {
        move_rest_to_unknown(to.totals, to.entries, count);
        to.dropped = from.entries.size() - to.entries.size();
    }

    void add(const profile::StackHotlist& from) {
        auto& to = profile_.stacks.emplace();
        to.totals = from.totals;
        const auto less = [&](const auto& a, const auto& b) {
            return std::lexicographical_compare(
                a.frames.begin(), a.frames.end(), b.frames.begin(), b.frames.end(),
                [&](const auto& x, const auto& y) { return ranked(x) < ranked(y); });
        };
        for (const auto* e : strongest(from.entries, count_of_entry, less)) {
            auto& entry = to.entries.emplace_back();
            for (const auto& frame : e->frames)
                entry.frames.push_back(index_of(frame, !entry.frames.empty()));
            entry.statistics = e->statistics;
        }
        account_for_dropped(from, to, count_of_entry);
    }

    void add(const profile::PathHotlist& from) {
        auto& to = profile_.paths.emplace();
        to.totals = from.totals;
        const auto less = [&](const auto& a, const auto& b) {
            return std::lexicographical_compare(
                a.blocks.begin(), a.blocks.end(), b.blocks.begin(), b.blocks.end(),
                [&](const auto& x, const auto& y) {
                    return std::pair(ranked(x.start), x.instructions) <
                           std::pair(ranked(y.start), y.instructions);
                });
        };
        for (const auto* e : strongest(from.entries, count_of_entry, less)) {
            auto& entry = to.entries.emplace_back();
            for (const auto& b : e->blocks) {
                const auto start = index_of(b.start);
                entry.blocks.push_back({start, start, b.instructions});
            }
            entry.statistics = e->statistics;
        }
        account_for_dropped(from, to, count_of_entry);
    }

    void add(const profile::EdgeHotlist& from) {
        auto& to = profile_.edges.emplace();
        to.totals = from.totals;
        const auto less = [&](const auto& a, const auto& b) {
            return std::tuple(ranked(a.from), ranked(a.to), a.kind) <
                   std::tuple(ranked(b.from), ranked(b.to), b.kind);
        };
        for (const auto* e : strongest(from.entries, count_of_entry, less))
            to.entries.push_back({index_of(e->from), index_of(e->to), e->kind, e->statistics});
        account_for_dropped(from, to, count_of_entry);
    }

    void add(const profile::CallHotlist& from) {
        auto& to = profile_.calls.emplace();
        to.totals = from.totals;
        const auto less = [&](const auto& a, const auto& b) {
            return std::pair(ranked(a.from), ranked(a.to)) <
                   std::pair(ranked(b.from), ranked(b.to));
        };
        for (const auto* e : strongest(from.entries, count_of_entry, less))
            to.entries.push_back({index_of(e->from), index_of(e->to), e->statistics});
        account_for_dropped(from, to, count_of_entry);
    }

    void add(const profile::MethodHotlist& from) {
        auto& to = profile_.methods.emplace();
        to.totals = from.totals;
        to.instructions = from.instructions;
        const auto less = [&](const auto& a, const auto& b) {
            return ranked(a.function) < ranked(b.function);
        };
        for (const auto* e : strongest(from.entries, count_of_entry, less))
            to.entries.push_back({index_of(e->function), e->statistics, e->calls, e->tail_calls,
                                  e->back_edges, e->instructions});
        account_for_dropped(from, to, count_of_entry);
        move_rest_to_unknown(to.instructions, to.entries,
                             [](const auto& e) { return e.instructions.count; });
    }

    void add(const profile::ValueHotlist& from) {
        auto& to = profile_.values.emplace();
        to.totals = from.totals;
        to.unread = unread_of(from.all_executions, from.totals);
        const auto read = [](const auto& e) { return e.executions.total; };
        const auto executions = [](const auto& e) {
            return std::max(e.all_executions, e.executions.total);
        };
        const auto less = [&](const auto& a, const auto& b) {
            const auto identity = [&](const auto& e) {
                return std::tuple(ranked(e.location), e.kind, e.operand, e.context.has_value(),
                                  e.context ? ranked(*e.context) : trace::Location{});
            };
            return identity(a) < identity(b);
        };
        for (const auto* e : strongest(from.entries, executions, less)) {
            auto& entry = to.entries.emplace_back();
            entry.location = index_of(e->location);
            entry.operand_index = e->operand;
            entry.kind = kind_of(e->kind);
            entry.bits = e->bits;
            if (e->context) entry.context = index_of(*e->context, true);
            entry.executions = e->executions;
            entry.unread = unread_of(e->all_executions, e->executions);
            entry.probability_inverse = e->probability_inverse;
            if (e->stride)
                entry.stride =
                    Stride{e->stride->step, e->stride->share, e->stride->count, e->stride->steps};
            add_values(entry, e->top);
        }
        account_for_dropped(from, to, read);
    }

    void add(const profile::LatencyHotlist& from) {
        auto& to = profile_.latencies.emplace();
        to.totals = from.totals;
        to.scale = from.scale;
        to.loads = from.loads;
        const auto waited = [](const auto& e) { return e.waited.count; };
        const auto less = [&](const auto& a, const auto& b) {
            const auto far = [](const auto& e) {
                return std::tuple(e.by_model[3], e.by_model[2], e.by_model[1]);
            };
            if (far(a) != far(b)) return far(a) > far(b);
            return std::pair(ranked(a.location), a.operand) <
                   std::pair(ranked(b.location), b.operand);
        };
        for (const auto* e : strongest(from.entries, waited, less)) {
            LatencyEntry entry;
            entry.location = index_of(e->location);
            entry.operand_index = e->operand;
            entry.loads = e->loads;
            entry.timed = e->timed;
            entry.disturbed = e->disturbed;
            entry.statistics = e->waited;
            entry.picoseconds = e->picoseconds;
            entry.square_nanoseconds = e->square_nanoseconds;
            entry.histogram = e->histogram;
            entry.by_time = e->by_time;
            entry.by_model = e->by_model;
            entry.modelled = e->modelled;
            entry.page_walks = e->page_walks;
            entry.pattern = e->pattern;
            entry.step = e->step;
            if (e->origin) entry.origin = index_of(*e->origin);
            to.entries.push_back(std::move(entry));
        }
        account_for_dropped(from, to, count_of_entry);
    }
    static std::uint64_t unread_of(std::uint64_t all, const Totals& read) {
        return std::max(all, read.total) - read.total;
    }

    // Counts of values are estimates, each unbiased on its own; together they may exceed what was
    // executed. The rarest, which are the least sure, then give way.
    void add_values(ValueEntry& entry, const std::vector<profile::ValueShare>& top) const {
        std::uint64_t left = entry.executions.total;
        for (const auto& v : top) {
            const bool full =
                options_.limit != 0 && entry.top.size() == options_.values_per_location;
            if (left == 0 || full) break;
            const auto statistics = v.statistics.scaled_to(std::min(v.statistics.count, left));
            left -= statistics.count;
            entry.top.push_back({v.value, statistics});
        }
        entry.executions.unknown = left;
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
            auto& longest = block_at_[block.place];
            if (!longest || longest->instructions.size() < block.instructions.size())
                longest = &block;
        }
    }

    // Paths name blocks by start and length; the file also says where their last instruction is.
    void end_paths() {
        if (!profile_.paths) return;
        for (auto& path : profile_.paths->entries)
            for (auto& b : path.blocks) {
                const auto block = block_at_.find(places_[b.start].place);
                SHADOWPROF_ASSERT(block != block_at_.end() && b.instructions > 0 &&
                                      b.instructions <= block->second->instructions.size(),
                                  "a path has a block that was never published");
                const auto& last = block->second->instructions[b.instructions - 1];
                const auto place = block->second->place_of(last);
                b.end = index_of(place);
                instructions_.emplace(place, &last);
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
        const auto describe = [&](auto& entry) {
            entry.operand = operand_text(instructions_.at(places_[entry.location].place),
                                         profile_.at(entry.location).text, entry.operand_index);
        };
        if (profile_.values)
            for (auto& e : profile_.values->entries) describe(e);
        if (profile_.latencies)
            for (auto& e : profile_.latencies->entries) describe(e);
    }

    void sort_locations() {
        const auto moved_to = put_in_order(profile_.locations, [&](auto a, auto b) {
            return std::pair(ranked(places_[a].place), places_[a].return_address) <
                   std::pair(ranked(places_[b].place), places_[b].return_address);
        });
        each_location_index(profile_, [&](LocationIndex& i) { i = moved_to[i]; });
    }

    const trace::BlockTable& blocks_;
    const std::vector<trace::Module> modules_;
    Symbols& symbols_;
    const AssembleOptions options_;
    Profile profile_;
    MovedTo rank_;  // of a ModuleId among the paths
    std::unordered_map<Key, LocationIndex, KeyHash> indices_;
    std::vector<Key> places_;  // by index, until sort_locations()
    InstructionMap instructions_;
    std::unordered_map<trace::Location, const Block*, trace::LocationHash> block_at_;
};

}  // namespace

Profile assemble(RunFacts facts, const profile::Hotlists& hotlists, const trace::BlockTable& blocks,
                 const trace::ModuleTable& modules, Symbols& symbols,
                 const AssembleOptions& options) {
    return Assembler(std::move(facts), blocks, modules, symbols, options).assemble(hotlists);
}

}  // namespace shadowprof::report
