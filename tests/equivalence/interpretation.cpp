#include "interpretation.h"

#include <cstring>
#include <utility>

#include "cannot_be_equal.h"

namespace shadowprof::equivalence {

namespace {

// Fills a RecordedTrace.
class Recording : public emu::BlockSink {
  public:
    explicit Recording(RecordedTrace& trace) : trace_(trace) {}
    void executed(std::span<const trace::BlockId> blocks,
                  std::span<const std::uint64_t> values) override {
        trace_.blocks.insert(trace_.blocks.end(), blocks.begin(), blocks.end());
        trace_.values.insert(trace_.values.end(), values.begin(), values.end());
    }
    void discontinuity(Address continuation) override {
        trace_.blocks.push_back(trace::discontinuity);
        trace_.values.push_back(continuation.value);
    }

  private:
    RecordedTrace& trace_;
};

}  // namespace

emu::PageSource::Fetched Interpretation::FirstPages::fetch(Address page, std::byte* into,
                                                           std::size_t, std::size_t) {
    auto& kept = pages_[page];
    if (!kept) {
        kept = std::make_unique<Kept>();
        kept->fetched = source_.fetch(page, kept->bytes.data(), 0, page_size);
        kept->fetched.is_all = true;
    }
    std::memcpy(into, kept->bytes.data(), kept->bytes.size());
    return kept->fetched;
}

Interpretation::Interpretation(emu::GuestCode& code, const trace::ModuleTable& modules,
                               bool shares_our_clocks)
    : code_(code),
      modules_(modules),
      blocks_(code),
      guest_pages_(shares_our_clocks),
      view_(pages_),
      interpreter_(blocks_) {}

Interpretation::~Interpretation() = default;

void Interpretation::begin(const EndState& start) {
    start_ = start;
    pages_.forget();
    code_.mappings_may_have_changed();
    guest_pages_.use(code_.memory(), code_.maps());
    if (code_.epoch() == code_epoch_) return;
    interpreter_.forget_code();
    code_epoch_ = code_.epoch();
}

Interpretation::Run Interpretation::run(std::uint64_t instructions, bool recorded) {
    Run run{{}, {start_->registers, start_->extended}, {}};
    view_.drop();
    if (instructions == 0) return run;
    Recording recording{run.trace};
    run.stop = interpreter_.run(run.state, view_, instructions, recorded ? &recording : nullptr);
    return run;
}

Interpretation::Run Interpretation::go_on(const emu::GuestState& from, std::uint64_t instructions) {
    Run run{{}, from, {}};
    Recording recording{run.trace};
    run.stop = interpreter_.run(run.state, view_, instructions, &recording);
    return run;
}

std::uint64_t Interpretation::comparable(const std::vector<ExecutedInstruction>& executed,
                                         std::optional<std::string>& why) const {
    const trace::Block* block = nullptr;
    for (std::size_t n = 0; n < executed.size(); ++n) {
        const auto& instruction = executed[n].instruction();
        if (std::exchange(block, executed[n].block) != executed[n].block &&
            modules_.at(block->place.module).path == clock_module)
            why = clock_reason;
        for (const auto& exception : instructions_that_cannot_be_equal)
            if (exception.mnemonic == instruction.mnemonic) why = exception.reason;
        if (why) return n;
    }
    return executed.size();
}

}  // namespace shadowprof::equivalence
