#include "cases.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "decoder/decoder.h"
#include "exceptions.h"

namespace shadowprof::differential {

namespace {

constexpr std::size_t states_per_sequence = 8;
constexpr std::size_t most_reports = 40;
constexpr unsigned most_repetitions = 2;

}  // namespace

class Differential::Blocks : public emu::BlockSource {
  public:
    void use(emu::GuestCode& code) { code_ = &code; }
    const trace::Block* block_at(Address at, emu::MemoryView& view) override {
        return NativeCode::contains(at) ? code_->block_at(at, view) : nullptr;
    }
    const trace::Block& cut(const trace::Block& block, std::size_t instructions) override {
        return code_->cut(block, instructions);
    }
    bool may_change(Address at) override { return code_->may_change(at); }

  private:
    emu::GuestCode* code_ = nullptr;
};

Differential::World::World(bool looks_writable, TranslatedCode::Place place)
    : changes(looks_writable),
      code(::getpid(), blocks, modules,
           trace::CapturePlan(trace::Capture::destination_values) |
               trace::Capture::memory_addresses | trace::Capture::loaded_values),
      translated(code, place) {}

Differential::Differential(const FormTable& forms, std::uint64_t seed)
    : forms_(forms),
      random_(seed),
      statistics_(forms.forms().size()),
      blocks_(std::make_unique<Blocks>()),
      view_(arena_),
      interpreter_(*blocks_),
      initial_arena_(Arena::size),
      interpreted_arena_(Arena::size),
      native_arena_(Arena::size),
      translated_arena_(Arena::size) {
    std::map<std::string, std::vector<std::size_t>> extensions;
    for (std::size_t n = 0; n < forms.forms().size(); ++n) {
        const auto& form = forms.forms()[n];
        extensions[form.extension].push_back(n);
        by_name_[form.name] = n;
        const auto example = decode(form.examples.front(), Address{0x10000});
        if (example->flow != decoder::Flow::next && example->target.value != 0)
            direct_branches_.push_back(n);
    }
    for (auto& [name, members] : extensions) by_extension_.push_back(std::move(members));
    begin_world();
}

Differential::~Differential() = default;

void Differential::begin_world() {
    constexpr double share_of_changing_code = 0.3;
    followed_ += followed_units();
    world_.reset();
    code_.clear();
    interpreter_.forget_code();
    const bool changes = random_.chance(share_of_changing_code);
    world_ = std::make_unique<World>(
        changes, random_.chance(0.3) ? TranslatedCode::Place::far : TranslatedCode::Place::near);
    world_->translated.stay_in_page(true);
    code_.look_writable(changes);
    world_->code.maps();
    code_.look_writable(false);
    blocks_->use(world_->code);
    sequences_in_world_ = 0;
}

std::uint64_t Differential::followed_units() const {
    return world_ ? world_->translated.translator().statistics().followed : 0;
}

void Differential::run(std::uint64_t cases) {
    const auto until = cases_ + cases;
    while (cases_ < until) run_sequence();
}

void Differential::run_sequence() {
    if (!make_sequence()) return;
    for (std::size_t n = 0; n < states_per_sequence; ++n) {
        make_state();
        run_state();
    }
}

namespace {

class Sink : public emu::BlockSink {
  public:
    Sink(std::vector<trace::BlockId>& blocks, std::vector<std::uint64_t>& values)
        : blocks_(blocks), values_(values) {
        blocks.clear();
        values.clear();
    }
    void executed(std::span<const trace::BlockId> blocks,
                  std::span<const std::uint64_t> values) override {
        blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
        values_.insert(values_.end(), values.begin(), values.end());
    }
    void discontinuity(Address) override {}

  private:
    std::vector<trace::BlockId>& blocks_;
    std::vector<std::uint64_t>& values_;
};

}  // namespace

void Differential::run_state() {
    constexpr std::uint64_t most_instructions = 10'000;
    std::memcpy(initial_arena_.data(), arena_.data(), Arena::size);
    const bool recorded = random_.chance(0.5);
    const auto version = recorded && random_.chance(0.7) ? TranslatedCode::Version::values
                                                         : TranslatedCode::Version::lean;
    const bool is_disturbed = random_.chance(0.2);
    const auto has = [&](auto property) {
        return std::any_of(steps_.begin(), steps_.end(),
                           [&](const Step& step) { return property(step.instruction); });
    };
    const bool shows_use = has(tells_what_is_in_use);
    const bool may_differ = shows_use || has(tells_processor);
    ++cases_;
    for (unsigned attempt = 0;; ++attempt) {
        view_.drop();
        interpreted_ = native_ = translated_ = initial_;
        Sink sink(interpreted_blocks_, interpreted_values_);
        const auto stop =
            interpreter_.run(interpreted_, view_, most_instructions, recorded ? &sink : nullptr);
        // A last branch may go where a register still points to, over and over: so would the CPU.
        const bool goes_round = stop.kind == emu::StopKind::instructions;
        if (goes_round || (stop.kind == emu::StopKind::memory_fault &&
                           world_->translated.contains(stop.fault_address))) {
            --cases_;
            return;
        }
        for (std::size_t n = 0; n < Arena::pages; ++n)
            std::memcpy(interpreted_arena_.data() + n * page_size,
                        view_.page(Arena::begin + n * page_size, page_size).data, page_size);
        const auto native = code_.run(native_);
        std::memcpy(native_arena_.data(), arena_.data(), Arena::size);
        arena_.restore(initial_arena_);
        const auto cached =
            world_->translated.run(code_, translated_, version, is_disturbed ? &random_ : nullptr);
        std::memcpy(translated_arena_.data(), arena_.data(), Arena::size);

        // There the interpreter ends, one instruction before the CPU traps.
        const bool sets_trap_flag = stop.kind == emu::StopKind::trap_flag;
        auto found = sets_trap_flag ? std::string{} : differences(stop, native);
        const bool interpreter_agrees = found.empty();
        // After each request all registers are loaded anew.
        const bool changed_what_is_in_use = shows_use && cached.requests > 0;
        if (!changed_what_is_in_use) found += translated_differences(native, cached, version);
        if (recorded && found.empty() && interpreter_agrees && !cached.unsupported)
            found += trace_differences(cached, version);
        if (attempt == most_repetitions && shows_use &&
            (in_use_is_a_guess() || may_save_other_components())) {
            --cases_;
            return;
        }
        const bool may_agree_later = may_differ || has_unusable_stack() || has_lost_nested_task();
        if (found.empty() || !may_agree_later || attempt == most_repetitions) {
            if (attempt > 0 && found.empty()) ++agreed_later_;
            if (version == TranslatedCode::Version::lean && random_.chance(0.2))
                world_->translated.follow(cached.blocks);
            requests_ += cached.requests > 0;
            instructions_ += stop.instructions;
            if (cached.unsupported)
                ++statistics_[steps_[step_at(world_->translated.unsupported_at())].form]
                      .untranslated;
            count(stop, native, found);
            return;
        }
        arena_.restore(initial_arena_);
    }
}

// Of several instructions the first ones may change what is asked for.
bool Differential::may_save_other_components() const {
    constexpr auto all = ~std::uint64_t{0};
    return steps_.size() > 1 ? asks_for_other_components(all, all)
                             : asks_for_other_components(initial_.general[decoder::rax],
                                                         initial_.general[decoder::rdx]);
}

bool Differential::has_unusable_stack() const {
    return std::ranges::any_of(
        std::array{&initial_, &interpreted_, &native_, &translated_},
        [](const emu::GuestState* state) { return !is_canonical({state->general[decoder::rsp]}); });
}

bool Differential::has_lost_nested_task() const {
    constexpr std::uint64_t nested_task = 0x4000;
    return ((interpreted_.rflags ^ native_.rflags) & nested_task) != 0;
}

std::size_t Differential::step_at(Address at) const {
    for (std::size_t n = 0; n < steps_.size(); ++n)
        if (steps_[n].instruction.address == at) return n;
    return steps_.size() - 1;
}

void Differential::count(const emu::Stop& stop, const NativeEnd& native,
                         const std::string& differences) {
    const bool leaves_address_space =
        steps_.back().instruction.flow != decoder::Flow::next && !is_canonical(interpreted_.rip);
    // For the engines an address that is not aligned is not a fault.
    const bool is_checked = native.signal == SIGBUS && (native_.rflags & alignment_check_flag) != 0;
    const bool expected = leaves_address_space || is_checked ||
                          std::any_of(steps_.begin(), steps_.end(), [](const Step& step) {
                              return exception_for(step.instruction) != nullptr;
                          });
    // What happened belongs to the instruction that faulted, or to the last one.
    const auto culprit = step_at(native_.rip);
    for (std::size_t n = 0; n <= culprit; ++n) {
        auto& form = statistics_[steps_[n].form];
        if (n == culprit && native.signal == SIGILL) {
            ++form.illegal;
            continue;
        }
        ++form.executed;
        if (n == culprit && native.signal != 0 && native.signal != SIGTRAP) ++form.faulted;
        if (expected) ++form.excepted;
    }
    auto& form = statistics_[steps_[culprit].form];
    if (stop.kind == emu::StopKind::unsupported)
        ++statistics_[steps_[step_at(interpreted_.rip)].form].unsupported;
    if (flag_difference() & undefined_flags()) ++form.undefined_flags;
    if (differences.empty() || expected) return;
    ++form.mismatches;
    ++mismatches_;
    if (reports_.size() >= most_reports) return;
    std::string report =
        fmt::format("{} of {}:\n", forms_.forms()[steps_[culprit].form].name, steps_.size());
    for (const auto& step : steps_) {
        report += "   ";
        for (const auto byte : step.instruction.encoding())
            report += fmt::format(" {:02x}", std::to_integer<int>(byte));
        report += "  " + decoder::text(step.instruction) + "\n";
    }
    for (std::size_t n = 0; n < 16; ++n)
        report += fmt::format(" {}={:x}", general_name(n), initial_.general[n]);
    report += fmt::format("\n fs={:x} gs={:x} rip={:x}\n", initial_.fs_base, initial_.gs_base,
                          start_.value);
    reports_.push_back(report + differences);
}

}  // namespace shadowprof::differential
