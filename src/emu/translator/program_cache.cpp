#include "emu/translator/program_cache.h"

#include <fmt/format.h>
#include <sys/personality.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>

#include "emu/syscalls/table.h"
#include "emu/tuning.h"
#include "inject/planned_calls.h"
#include "proc/call_facts.h"
#include "proc/control_groups.h"
#include "proc/process_info.h"

namespace shadowprof::emu::translator {

ProgramCache::~ProgramCache() {
    drop();
}

ProgramCache::ProgramCache(ptrace::Tracer& tracer, GuestCode& code, trace::SegmentTable& segments,
                           KnownCode& known, bool nothing_random, Asking asking)
    : tracer_(tracer),
      code_(code),
      segments_(segments),
      known_(known),
      nothing_random_(nothing_random),
      asking_(asking) {}

bool ProgramCache::make(ptrace::Thread& thread, std::string& why) {
    const auto wanted = asking_ == Asking::in_bursts ? tuning::least_memory_left_in_bursts
                                                     : tuning::least_memory_left;
    const auto left = proc::memory_left_in_groups(tracer_.pid());
    if (left < wanted) {
        why = fmt::format("its control group has only {:.0f} MB of memory left (memory.max)",
                          std::max(left, 0.0) / 1e6);
        return false;
    }
    confinement_ = inject::confinement_of(tracer_.pid(), thread.tid());
    if (confinement_ && confinement_->shadow_stack) {
        why = "it uses shadow stacks (CET)";
        return false;
    }
    memory_ = SharedMemory::create(tracer_, thread, why);
    is_in_program_ = memory_ != nullptr;
    if (!memory_) return false;
    open_exchange();
    if (!life_->is_given()) {
        why = "the kernel tells nobody when a thread of ours ends";
        drop();
        return false;
    }
    if (asking_ == Asking::in_bursts) {
        memory_->is_for_bursts();
        thread.resume();
        went_on_at_ = Clock::now();
    }
    if (known_.is_kept()) kept_ = std::make_unique<KeptCode>(code_, asking_);
    translator_ =
        std::make_unique<Translator>(code_, segments_, memory_->tables(), memory_->tables_place(),
                                     asking_, &known_, kept_.get());
    for (const auto& arena : memory_->arenas())
        translator_->add_arena(arena.ours, arena.place, arena.size, memory_->places());
    hot_code_ = std::make_unique<HotCode>(*translator_, segments_);
    if (nothing_random_ && !remove_randomness(thread, why)) return false;
    code_.mappings_may_have_changed();
    code_.maps();
    if (asking_ == Asking::by_memory) code_.let_constants_vary();
    epoch_ = code_.epoch();
    return true;
}

void ProgramCache::open_exchange() {
    auto& exchange = memory_->exchange();
    exchange.patience[1] = tuning::patience_for_answer;
    exchange.rounds = tuning::spins_for_answer;
    exchange.may_call = asking_ == Asking::by_memory;
    for (const auto& row : system_call_rows())
        if (static_cast<std::size_t>(row.number) < most_calls)
            exchange.calls[row.number] = in_cache(row);
    life_.emplace(exchange.life);
    tracer_.set_bell(
        ptrace::Tracer::Bell{&exchange.bell, &exchange.profiler_sleeps, &exchange.bell_is_mute});
}

bool ProgramCache::remove_randomness(ptrace::Thread& thread, std::string& why) {
    // The program derives values from these bytes, above all the stack protector's: with fixed
    // bytes they are the same in every run.
    std::array<std::byte, 16> same;
    for (std::size_t i = 0; i < same.size(); ++i) same[i] = std::byte(0xa5 ^ (i * 29));
    if (const auto place = proc::random_bytes_of(tracer_.pid())) code_.memory().write(*place, same);
    // The program's children are to have random addresses again.
    const auto as_usual = static_cast<std::uint64_t>(personality(0xffffffff));
    return inject::carry_out(
        tracer_, thread, {{{SYS_personality, {as_usual}}}, ""}, [](std::size_t, std::int64_t) {},
        why);
}

void ProgramCache::drop() {
    tracer_.set_bell({});
    life_.reset();
    hot_code_.reset();
    translator_.reset();
    kept_.reset();
    memory_.reset();
    is_in_program_ = false;
}

void ProgramCache::keep() const {
    if (kept_) kept_->keep(*translator_);
}

void ProgramCache::take_out(ptrace::Thread& thread) {
    is_in_program_ = !memory_->remove(tracer_, thread);
}

bool ProgramCache::has_same_confinement(const ptrace::Thread& thread) const {
    return inject::confinement_of(tracer_.pid(), thread.tid()) == confinement_;
}

void ProgramCache::bring_in_new_code() const {
    const proc::Memory program{tracer_.pid()};
    for (auto& arena : translator_->arenas())
        for (const auto pages : arena.take_new_pages()) program.bring_in(pages);
}

bool ProgramCache::is_outdated() {
    if (code_.epoch() == epoch_) return false;
    epoch_ = code_.epoch();
    return true;
}

bool ProgramCache::is_outdated_after(const ptrace::Registers& call) {
    const auto& facts = proc::facts_of_call(static_cast<std::int64_t>(call.raw.orig_rax));
    if (facts.changes_mappings == proc::ChangesMappings::never) return false;
    code_.mappings_may_have_changed();
    const auto changed = facts.changed(call.arguments(), call.result());
    if (!translator_ || std::ranges::none_of(changed, [&](const AddressRange& range) {
            return translator_->has_code_in(range);
        }))
        return false;
    code_.maps();
    return is_outdated();
}

void ProgramCache::empty() {
    translator_->forget_everything();
    hot_code_->forget_everything();
}

bool ProgramCache::learn(std::span<const trace::SegmentId> executed, Random& random) {
    return hot_code_ && hot_code_->look_at(executed, random);
}

}  // namespace shadowprof::emu::translator
