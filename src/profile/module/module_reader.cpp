#include "profile/module/module_reader.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "decoder/decoder.h"
#include "profile/common/transitions.h"
#include "profile/mix/instruction_kind.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

namespace {

using decoder::Flow;
using decoder::Instruction;
using decoder::OperandKind;
using decoder::RegisterKind;

shadowprof_operand described(const decoder::Operand& operand, const Instruction& i) {
    shadowprof_operand out{};
    out.reads = operand.reads;
    out.writes = operand.writes;
    out.bits = operand.bits;
    out.element_bits = operand.element_bits;
    out.is_floating = operand.element_type == decoder::ElementType::floating;
    out.is_scalar = i.scalar_bits != 0;
    out.number = operand.reg.number;
    if (operand.kind == OperandKind::memory) out.kind = SHADOWPROF_OPERAND_MEMORY;
    if (operand.kind == OperandKind::reg && operand.reg.kind == RegisterKind::general)
        out.kind = SHADOWPROF_OPERAND_GENERAL;
    if (operand.kind == OperandKind::reg && operand.reg.kind == RegisterKind::vector)
        out.kind = SHADOWPROF_OPERAND_VECTOR;
    if (operand.kind == OperandKind::immediate) {
        out.kind = SHADOWPROF_OPERAND_IMMEDIATE;
        out.value = operand.immediate;
    }
    return out;
}

std::uint16_t classes_of(const Instruction& i) {
    unsigned classes = 0;
    const auto flow = i.flow;
    const bool is_indirect = flow == Flow::indirect_call || flow == Flow::indirect_jump;
    if (flow == Flow::call || flow == Flow::indirect_call) classes |= SHADOWPROF_CALL;
    if (flow == Flow::return_) classes |= SHADOWPROF_RETURN;
    if (flow == Flow::jump || flow == Flow::indirect_jump || flow == Flow::conditional)
        classes |= SHADOWPROF_BRANCH;
    if (flow == Flow::conditional) classes |= SHADOWPROF_CONDITIONAL;
    if (is_indirect) classes |= SHADOWPROF_INDIRECT;
    if ((flow == Flow::jump || flow == Flow::conditional) && i.target <= i.address)
        classes |= SHADOWPROF_BACKWARD;
    if (flow == Flow::system_call) classes |= SHADOWPROF_SYSTEM_CALL;
    if (i.lock) classes |= SHADOWPROF_ATOMIC;
    return static_cast<std::uint16_t>(classes);
}

}  // namespace

std::uint32_t ModuleFeed::place_of(const trace::Block& block, const RuleHit& hit) {
    const auto& i = block.instructions[hit.instruction];
    const auto at = block.place_of(i);
    const auto [known, is_new] =
        numbers_.try_emplace(at, static_cast<std::uint32_t>(places_.size()));
    if (is_new) places_.push_back(at);
    const auto number = known->second;
    if (told_.empty()) told_.resize(modules_.watches().size());
    auto& told = told_[hit.rule];
    if (told.size() <= number) told.resize(places_.size());
    if (told[number]) return number;
    told[number] = true;

    const auto& watch = modules_.watches()[hit.rule];
    const auto name = rules_.names().name_of(at);
    const auto kind = kind_of(i);
    const auto text = decoder::text(i);
    const std::string mnemonic(decoder::mnemonic_name(i)), extension(kind.extension),
        category(kind.category);
    shadowprof_instruction out{};
    out.size = sizeof out;
    out.place = number;
    out.watch = watch.number;
    out.length = i.length;
    out.classes = classes_of(i);
    if (const auto* const memory = explicit_memory(i)) {
        out.bytes = memory->bits / 8u;
        if (memory->reads) out.classes |= SHADOWPROF_LOAD;
        if (memory->writes) out.classes |= SHADOWPROF_STORE;
    }
    if (!name.function.empty() && name.offset == 0) out.classes |= SHADOWPROF_ENTRY;
    out.address = i.address.value;
    out.offset = at.offset;
    if (i.flow == Flow::call || i.flow == Flow::jump || i.flow == Flow::conditional)
        out.target = i.target.value;
    out.text = text.c_str();
    out.mnemonic = mnemonic.c_str();
    out.extension = extension.c_str();
    out.category = category.c_str();
    out.function = name.function.c_str();
    out.function_offset = name.offset;
    out.image = name.image.c_str();
    for (const auto& operand : i.operands())
        if (out.operand_count < SHADOWPROF_MOST_OPERANDS)
            out.operands[out.operand_count++] = described(operand, i);
    modules_.worker(watch.module).look(out);
    return number;
}

void ModuleFeed::count(Sample& sample, trace::BlockId block, std::uint64_t times) {
    for (const auto& hit : plan_of(block).hits)
        sample.modules[modules_.watches()[hit.rule].module].all += times;
}

void ModuleFeed::end_sample(trace::SampleId id, std::uint64_t weight) {
    samples_.close(id, [&](Sample& sample) {
        for (std::size_t n = 0; n < modules_.size(); ++n) {
            const auto& of_module = sample.modules[n];
            covered_[n].read += of_module.read * weight;
            covered_[n].all += of_module.all * weight;
            if (sample.is_read)
                modules_.worker(n).end_sample(static_cast<std::uint32_t>(id), weight);
        }
        sample = {};
    });
}

void ModuleFeed::end_samples() {
    while (const auto open = samples_.first_open()) end_sample(*open, 1);
}

ModuleReader::ModuleReader(ModuleFeed& feed, const trace::TraceStart& start)
    : feed_(feed),
      counts_(feed.open(start.sample)),
      sample_(start.sample),
      walker_(feed.blocks()),
      contexts_(feed.contexts(), start),
      thread_(feed.next_thread()),
      events_(feed.modules().size()) {
    counts_.is_read = true;
    for (std::size_t n = 0; n < feed.modules().watches().size(); ++n)
        awaits_ = awaits_ || feed.rules().awaits_returns(n);
    hand_to_all(SHADOWPROF_THREAD_BEGINS);
}

void ModuleReader::digest(const trace::TraceChunk& chunk) {
    values_ = chunk.values;
    walker_.digest(chunk, *this);
    SHADOWPROF_ASSERT(values_.empty(), std::to_string(values_.size()) + " values left over");
    hand_over();
}

void ModuleReader::finish(const trace::TraceEnd& end) {
    walker_.finish(end, *this);
    awaited_.give_up_all(give_up());
    hand_to_all(SHADOWPROF_THREAD_ENDS);
    hand_over();
}

void ModuleReader::run(trace::BlockId before, std::span<const trace::BlockId> ids) {
    for (const auto id : ids) {
        const auto& block = feed_.blocks().at(id);
        if (before != no_block) left_by(feed_.blocks().at(before), block.start, block.place);
        step(block);
        before = id;
    }
}

void ModuleReader::interrupted() {
    values_ = values_.subspan(1);
    contexts_.interrupted();
}

// An executed block, up to its last instruction if it matters where that leads.
void ModuleReader::step(const trace::Block& block) {
    const auto& plan = feed_.plan_of(block.id);
    SHADOWPROF_ASSERT(plan.slots <= values_.size(), "values of a block are missing");
    const auto values = values_.first(plan.slots);
    values_ = values_.subspan(plan.slots);
    bool waits = awaits_ && plan.state.returned != no_slot;
    for (const auto& hit : plan.hits) {
        if (hit.is_last)
            waits = true;
        else
            look_at(block, hit, values, nullptr);
    }
    values_of_unfinished_.assign(values.begin(), waits ? values.end() : values.begin());
}

void ModuleReader::left_by(const trace::Block& from, Address next, const Location& place) {
    const auto& plan = feed_.plan_of(from.id);
    if (awaits_ && is_call(from.exit)) awaited_.call(from.place + from.size(), give_up());
    std::optional<RuleExit> exit;
    for (const auto& hit : plan.hits) {
        if (!hit.is_last) continue;
        if (!exit) exit = exit_of(from, next, place);
        look_at(from, hit, values_of_unfinished_, &*exit);
    }
    instructions_ += from.instructions.size();
    contexts_.pass(from, place);
    if (!awaits_ || from.exit != trace::BlockExit::return_) return;
    for (auto& awaited : awaited_.returned_to(place, give_up())) {
        auto& event = awaited.event;
        event.kind = SHADOWPROF_HAS_RETURNED;
        event.instructions = instructions_;
        if (plan.state.returned < values_of_unfinished_.size()) {
            event.words[awaited.word] = values_of_unfinished_[plan.state.returned];
            event.known = static_cast<std::uint16_t>(event.known | 1u << awaited.word);
        }
        hand(awaited.module, event);
    }
}

void ModuleReader::look_at(const trace::Block& block, const RuleHit& hit,
                           std::span<const std::uint64_t> values, const RuleExit* exit) {
    const auto& watch = feed_.modules().watches()[hit.rule];
    ++counts_.modules[watch.module].read;
    std::array<std::uint64_t, 2 * SHADOWPROF_MOST_WORDS> operands{};
    const auto count = std::min(hit.operands.size(), operands.size());
    for (std::size_t n = 0; n < count; ++n) {
        const auto& source = hit.operands[n].source;
        operands[n] = source.kind == RuleSource::Kind::slot
                          ? source.of(values[hit.operands[n].slot])
                          : source.constant;
    }
    if (hit.truth == Truth::depends) {
        const RuleHitFacts facts(block, hit, std::span(operands).first(count), exit);
        if (feed_.rules().holds(feed_.rules().rules()[hit.rule], facts) != Truth::yes) return;
    }
    shadowprof_event event{};
    event.kind = SHADOWPROF_EXECUTED;
    event.watch = watch.number;
    event.thread = thread_;
    event.place = feed_.place_of(block, hit);
    event.caller = static_cast<std::uint32_t>(contexts_.current());
    event.instructions = instructions_ + hit.instruction;
    std::optional<std::uint8_t> awaited;
    for (std::size_t word = 0; word < watch.words.size(); ++word) {
        const auto& wanted = watch.words[word];
        for (std::size_t n = 0; n < count; ++n) {
            const auto& bound = hit.operands[n];
            if (bound.operand != wanted) continue;
            const auto kind = bound.source.kind;
            if (kind == RuleSource::Kind::slot || kind == RuleSource::Kind::constant) {
                event.words[word] = operands[n];
                event.known = static_cast<std::uint16_t>(event.known | 1u << word);
            } else if (wanted.kind == RuleOperand::Kind::return_) {
                awaited = static_cast<std::uint8_t>(word);
            }
            break;
        }
    }
    if (awaited) event.ticket = feed_.next_ticket();
    hand(watch.module, event);
    if (!awaited) return;
    if (awaited_.has_call()) {
        awaited_.await({watch.module, *awaited, event});
    } else {
        event.kind = SHADOWPROF_NEVER_RETURNS;
        hand(watch.module, event);
    }
}

void ModuleReader::hand(std::uint32_t module, const shadowprof_event& event) {
    auto& events = events_[module];
    events.push_back(event);
    if (events.size() < tuning::events_in_a_message) return;
    feed_.modules().worker(module).take(static_cast<std::uint32_t>(sample_), events);
    events.clear();
}

void ModuleReader::hand_to_all(shadowprof_event_kind kind) {
    shadowprof_event event{};
    event.kind = static_cast<std::uint8_t>(kind);
    event.thread = thread_;
    event.instructions = instructions_;
    for (std::uint32_t n = 0; n < events_.size(); ++n) hand(n, event);
}

void ModuleReader::hand_over() {
    for (std::uint32_t n = 0; n < events_.size(); ++n) {
        if (events_[n].empty()) continue;
        feed_.modules().worker(n).take(static_cast<std::uint32_t>(sample_), events_[n]);
        events_[n].clear();
    }
}

}  // namespace shadowprof::profile
