#include "report/opportunities/spin_loops.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "decoder/decoder.h"
#include "report/opportunities/finding.h"
#include "report/symbols/cxx_names.h"

namespace shadowprof::report {

namespace {

using decoder::Flow, decoder::Instruction, decoder::Operand, decoder::OperandKind,
    decoder::RegisterKind;

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
}

// What a loop executes that only looks: it loads, compares and counts its rounds, and keeps
// nothing of what it saw.
class Looker {
  public:
    // False if it does more.
    bool add(const Instruction& i) {
        const auto name = decoder::mnemonic_name(i);
        is_pausing_ |= name == "pause";
        if (i.flow != Flow::next && i.flow != Flow::conditional && i.flow != Flow::jump)
            return false;
        for (const auto& o : i.operands())
            if (!add(i, name, o)) return false;
        return true;
    }

    // Always the same place, and what was found there decides.
    bool waits() const {
        const bool is_decided_by_loaded =
            std::ranges::any_of(compared_, [&](auto r) { return loaded_.contains(r); });
        if (accesses_.size() != 1 || (!is_decided_by_memory_ && !is_decided_by_loaded))
            return false;
        const auto& memory = accesses_.front();
        for (const auto& r : {memory.base, memory.index})
            if (r.kind == RegisterKind::general && written_.contains(r.number)) return false;
        return true;
    }
    bool pauses() const { return is_pausing_; }
    const decoder::MemoryOperand& access() const { return accesses_.front(); }

  private:
    bool add(const Instruction& i, std::string_view name, const Operand& o) {
        constexpr std::array<std::string_view, 2> attempts{"xchg", "cmpxchg"};
        constexpr std::array<std::string_view, 3> loads{"mov", "movzx", "movsxd"};
        // "and" and "shr" leave flags of a part of what was loaded.
        constexpr std::array<std::string_view, 5> comparisons{"cmp", "test", "bt", "and", "shr"};
        if (o.kind == OperandKind::memory) {
            if (o.memory.use != decoder::MemoryUse::access) return true;
            const bool is_attempt = is_one_of(name, attempts) && i.lock;
            if (o.writes && !is_attempt) return false;
            if (is_one_of(name, loads)) {
                for (const auto& to : i.explicit_operands())
                    if (to.kind == OperandKind::reg) loaded_.insert(to.reg.number);
            } else if (is_one_of(name, comparisons) || is_attempt) {
                is_decided_by_memory_ |= name != "xchg";
                if (name == "xchg")
                    for (const auto& to : i.explicit_operands())
                        if (to.kind == OperandKind::reg) loaded_.insert(to.reg.number);
            } else {
                return false;  // it computes with what it reads
            }
            if (std::ranges::find(accesses_, o.memory) == accesses_.end())
                accesses_.push_back(o.memory);
            return true;
        }
        if (o.kind != OperandKind::reg) return true;
        if (name == "mov" && o.reads && loaded_.contains(o.reg.number))
            for (const auto& to : i.explicit_operands())
                if (to.kind == OperandKind::reg && to.writes) loaded_.insert(to.reg.number);
        const auto kind = o.reg.kind;
        if (kind != RegisterKind::general && kind != RegisterKind::flags &&
            kind != RegisterKind::instruction_pointer)
            return false;
        if (kind == RegisterKind::general && o.writes) written_.insert(o.reg.number);
        if (is_one_of(name, comparisons) && kind == RegisterKind::general)
            compared_.insert(o.reg.number);
        return true;
    }

    std::vector<decoder::MemoryOperand> accesses_;
    std::set<std::uint8_t> written_, loaded_, compared_;
    bool is_decided_by_memory_ = false;
    bool is_pausing_ = false;
};

bool is_a_yield(const Evidence& e, Point call) {
    const auto edges = e.edges_from(call);
    return !edges.empty() && std::ranges::all_of(edges, [&](const auto* edge) {
        const auto name = without_stub(e.profile().at(edge->to).function);
        return edge->kind == EdgeKind::call && (name == "sched_yield" || name == "__sched_yield");
    });
}

Point point_at(const Evidence& e, Point first, Point last, std::uint64_t offset) {
    for (Point at = first; at <= last; ++at)
        if (e.place(at).offset == offset) return at;
    return Evidence::no_point;
}

bool is_long(const Evidence& e, const EdgeEntry& back, Point first) {
    const auto rounds = real(back.statistics.count);
    const auto begun = std::max(0.0, real(e.executions(first)) - rounds);
    return rounds >= tuning::least_spins * begun;
}

}  // namespace

double SpinLoop::work() const {
    return real(back->statistics.count) *
           (real(instructions) + (pauses ? tuning::instructions_in_a_pause : 0) +
            (locks ? tuning::instructions_in_a_lock : 0));
}

std::optional<SpinLoop> spin_loop(const Evidence& e, Symbols& symbols, const EdgeEntry& back) {
    const auto first = e.point(back.to), last = e.point(back.from);
    if (back.kind != EdgeKind::taken || first == Evidence::no_point || last == Evidence::no_point ||
        first > last || !e.same_function(first, last) ||
        back.statistics.count < tuning::least_executions || !is_long(e, back, first))
        return {};
    const auto begin = e.place(first).offset, end = e.place(last).offset;
    if (end - begin > tuning::longest_spin_loop || e.place(first).content != 0) return {};
    const auto& m = e.profile().modules[e.place(first).module];
    const auto code =
        symbols.code_of({m.path, m.build_id}, begin, end - begin + decoder::longest_instruction);
    SpinLoop loop;
    loop.back = &back;
    Looker looker;
    std::span<const std::byte> rest = code;
    for (Address at{begin}; at.value <= end;) {
        const auto i = decoder::decode(rest, at);
        if (!i) return {};
        const auto here = point_at(e, first, last, at.value);
        if (i->flow == Flow::call && here != Evidence::no_point && is_a_yield(e, here))
            loop.yields = true;
        else if (!looker.add(*i))
            return {};
        loop.locks |= i->lock;
        for (const auto& o : i->explicit_operands()) {
            if (o.kind != OperandKind::memory || o.memory.use != decoder::MemoryUse::access)
                continue;
            if (here != Evidence::no_point) loop.looks.push_back(e.location(here));
            const auto text = decoder::text(*i);
            const auto open = text.find('['), close = text.find(']', open);
            if (close != text.npos) loop.reads = text.substr(open, close - open + 1);
            if (o.memory.is_rip_relative())
                loop.address = i->end().value + static_cast<std::uint64_t>(o.memory.displacement);
        }
        ++loop.instructions;
        at = i->end();
        rest = rest.subspan(i->length);
    }
    if (!looker.waits()) return {};
    loop.pauses = looker.pauses();
    return loop;
}

}  // namespace shadowprof::report
