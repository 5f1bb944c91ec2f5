#include "profile/common/transitions.h"

namespace shadowprof::profile {

namespace {

class TransitionReader : public Reader {
  public:
    TransitionReader(const trace::BlockTable& blocks, TransitionCounts& counts)
        : blocks_(blocks), walker_(blocks), counts_(counts) {}

    void digest(const trace::TraceChunk& chunk) override {
        counts_.make_room(blocks_.size());
        walker_.digest(chunk, counts_);
    }
    void finish(const trace::TraceEnd& end) override { walker_.finish(end, counts_); }

  private:
    const trace::BlockTable& blocks_;
    Walker walker_;
    TransitionCounts& counts_;
};

}  // namespace

bool has_edge(trace::BlockExit exit) {
    using enum trace::BlockExit;
    return exit != system_call && exit != trap && exit != length && exit != cut;
}

std::optional<EdgeKind> edge_kind(const trace::Block& from, Address to) {
    if (to == Address{}) return std::nullopt;
    const auto& branch = from.last();
    const auto if_target = [&](EdgeKind kind) {
        return to == branch.target ? std::optional{kind} : std::nullopt;
    };
    switch (from.exit) {
        case trace::BlockExit::conditional:
            if (to == branch.target) return EdgeKind::taken;
            return to == branch.end() ? std::optional{EdgeKind::fallthrough} : std::nullopt;
        case trace::BlockExit::jump:
            return if_target(EdgeKind::taken);
        case trace::BlockExit::indirect_jump:
            return EdgeKind::indirect;
        case trace::BlockExit::call:
            return if_target(EdgeKind::call);
        case trace::BlockExit::indirect_call:
            return EdgeKind::call;
        case trace::BlockExit::return_:
            return EdgeKind::return_;
        default:
            return std::nullopt;
    }
}

void TransitionCounts::count_another(Row& row, trace::BlockId from, trace::BlockId to) {
    for (std::size_t i = 0; i < row.to.size(); ++i) {
        if (row.to[i] != no_block) continue;
        row.to[i] = to;
        row.count[i] = 1;
        touched_.push_back(from);
        return;
    }
    ++others(from, to);
}

std::unique_ptr<Reader> TransitionProfiler::open(const trace::TraceStart& start) {
    return std::make_unique<TransitionReader>(blocks_, samples_.open(start.sample));
}

void TransitionProfiler::count(trace::SampleId sample, const Counts& counts) {
    samples_.open(sample).add(counts);
}

void TransitionProfiler::end_sample(trace::SampleId sample, std::uint64_t weight) {
    samples_.close(sample, [&](TransitionCounts& counts) { fold(counts, weight); });
}

void TransitionProfiler::fold(TransitionCounts& counts, std::uint64_t weight) {
    counts.drain(
        blocks_, weight,
        [this](const trace::Block& from, Address next, const Location& place, std::uint64_t count) {
            for (const auto& profile : profiles_) profile->add(from, next, place, count);
        });
    for (const auto& profile : profiles_) profile->end_sample();
}

void TransitionProfiler::yield(Hotlists& into, Seen seen) {
    samples_.close_all([this](TransitionCounts& counts) { fold(counts, 1); });
    for (const auto& profile : profiles_) profile->yield(into, seen);
}

}  // namespace shadowprof::profile
