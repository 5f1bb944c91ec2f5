#include "profile/context/context.h"

#include <algorithm>
#include <utility>

#include "profile/common/tally.h"

namespace shadowprof::profile {

namespace {

class ContextReader : public Reader {
  public:
    ContextReader(ContextProfiler& profiler, const trace::BlockTable& blocks, CallWalk& walk)
        : profiler_(profiler), blocks_(blocks), walk_(walk) {}

    void digest(const trace::TraceChunk& chunk) override {
        std::size_t values = 0, discontinuities = 0;
        for (const auto id : chunk.blocks) {
            if (id == trace::discontinuity) {
                walk_.interrupted(Address{chunk.values[values++]},
                                  chunk.continuation_places[discontinuities++]);
                continue;
            }
            walk_.go_on(profiler_.stretches().of(id), chunk.values.data() + values);
            values += blocks_.at(id).slots.size();
        }
        profiler_.keep_small();
    }

    void digest(const trace::SegmentChunk& chunk, const trace::SegmentTable& segments) override {
        std::size_t discontinuities = 0;
        const auto* arguments = chunk.arguments.data();
        auto& stretches = profiler_.stretches();
        for (const auto id : chunk.segments) {
            if (id == trace::segment_discontinuity) {
                const auto& there = chunk.continuations[discontinuities++];
                walk_.interrupted(there.address, there.place);
                continue;
            }
            for (const auto& stretch : stretches.of(id, segments)) {
                walk_.go_on(stretch, arguments);
                arguments += stretch.arguments;
            }
        }
        profiler_.keep_small();
    }

    void finish(const trace::TraceEnd& end) override {
        walk_.takes(end.covers);
        walk_.end();
    }

  private:
    ContextProfiler& profiler_;
    const trace::BlockTable& blocks_;
    CallWalk& walk_;
};

template <class T>
T& at(std::vector<T>& all, std::size_t number) {
    if (number >= all.size()) all.resize(std::max<std::size_t>(64, 2 * number));
    return all[number];
}

}  // namespace

std::unique_ptr<Reader> ContextProfiler::open(const trace::TraceStart& start) {
    auto& sample = samples_.open(start.sample);
    sample.walks.push_back(
        std::make_unique<CallWalk>(tree_, stretches_, sample.counts, start, kept_.begin(start)));
    return std::make_unique<ContextReader>(*this, stretches_.blocks(), *sample.walks.back());
}

void ContextProfiler::end_sample(trace::SampleId id, std::uint64_t weight) {
    samples_.close(id, [&](Sample& sample) { fold(sample, weight); });
    keep_small();
}

void ContextProfiler::fold(Sample& sample, std::uint64_t weight) {
    for (const auto& walk : sample.walks) walk->end();
    const auto& counts = sample.counts;
    std::uint64_t total = 0;
    counts.self.for_each([&](NodeId, std::uint64_t count) { total += count * weight; });
    counts.self.for_each([&](NodeId node, std::uint64_t count) {
        at(nodes_, node).self.add_sample(count * weight, total);
    });
    for (const auto& [node, count] : counts.inclusive(tree_))
        at(nodes_, node).inclusive.add_sample(count * weight, total);
    counts.calls.for_each(
        [&](NodeId node, std::uint64_t count) { at(nodes_, node).calls += count * weight; });
    counts.of_functions.for_each([&](FunctionId function, std::uint64_t count) {
        at(functions_, function).inclusive.add_sample(count * weight, total);
    });
    counts.of_arcs.for_each([&](ArcId arc, std::uint64_t count) {
        at(arcs_, arc).inclusive.add_sample(count * weight, total);
    });
    counts.calls_of_arcs.for_each([&](ArcId arc, std::uint64_t count) {
        at(arcs_, arc).calls += count * weight;
        at(functions_, tree_.arc(arc).callee).calls += count * weight;
    });
    totals_.add_sample(total);
    sample.counts.clear();
    sample.walks.clear();
}

// Half of them, and those that threads are in.
void ContextProfiler::forget_rare_nodes() {
    std::vector<std::uint64_t> weights(tree_.size());
    std::vector<bool> kept(tree_.size());
    for (NodeId node = 0; node < tree_.size(); ++node)
        weights[node] = at(nodes_, node).inclusive.count;
    samples_.for_each([&](Sample& sample) {
        for (const auto& walk : sample.walks) {
            walk->settle();
            walk->each_node([&](NodeId node) { kept[node] = true; });
        }
        for (const auto& [node, count] : sample.counts.inclusive(tree_)) weights[node] += count;
    });
    auto order = weights;
    const auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2);
    std::nth_element(order.begin(), middle, order.end());
    for (auto node = static_cast<NodeId>(tree_.size()); node-- > 0;) {
        kept[node] = kept[node] || weights[node] > *middle;
        if (kept[node]) kept[tree_.parent(node)] = true;
    }
    const auto moved_to = tree_.keep_only(kept);
    std::vector<OfNode> nodes(tree_.size());
    for (std::size_t node = 0; node < moved_to.size(); ++node)
        if (kept[node]) nodes[moved_to[node]] = nodes_[node];
    nodes_ = std::move(nodes);
    samples_.for_each([&](Sample& sample) {
        sample.counts.self.renumber(moved_to);
        sample.counts.calls.renumber(moved_to);
        for (const auto& walk : sample.walks)
            walk->each_node([&](NodeId& node) { node = moved_to[node]; });
    });
}

void ContextProfiler::yield(Hotlists& into, Seen seen) {
    samples_.close_all([this](Sample& sample) { fold(sample, 1); });
    into.add(contexts(seen));
    into.add(callers(seen));
    if (kept_samples_ > 0) into.add(kept_.list(tree_));
}

Totals ContextProfiler::totals(Seen seen) const {
    auto totals = totals_;
    totals.exhaustive = seen == Seen::everything;
    return totals;
}

ContextHotlist ContextProfiler::contexts(Seen seen) const {
    ContextHotlist list;
    list.totals = totals(seen);
    list.totals.unknown = list.totals.total;
    for (NodeId node = 0; node < std::min(tree_.size(), nodes_.size()); ++node) {
        const auto& [self, inclusive, calls] = nodes_[node];
        if (tree_.is_root(node) || tree_.is_rest(node) || inclusive.count == 0) continue;
        auto& entry = list.entries.emplace_back();
        entry.root = tree_.context_of(node, entry.frames);
        entry.calls = calls;
        entry.statistics = self;
        entry.inclusive = inclusive;
        list.totals.unknown -= self.count;
    }
    sort_hotlist(list.entries);
    return list;
}

CallerHotlist ContextProfiler::callers(Seen seen) const {
    CallerHotlist list;
    list.totals = totals(seen);
    const auto add = [&](FunctionId function, std::optional<trace::Location> caller,
                         const OfCallee& found) {
        if (found.inclusive.count == 0) return;
        list.entries.push_back({tree_.entry_of(function), caller, found.calls, found.inclusive});
    };
    for (FunctionId function = 0; function < functions_.size(); ++function)
        add(function, {}, functions_[function]);
    for (ArcId arc = 0; arc < arcs_.size(); ++arc)
        if (arcs_[arc].inclusive.count != 0)
            add(tree_.arc(arc).callee, tree_.entry_of(tree_.arc(arc).caller), arcs_[arc]);
    sort_hotlist(list.entries);
    return list;
}

const ProfileType context_type{
    .name = "context",
    .section = section_type<ContextSection>(),
    .make_profiler = [](const ProfilerInputs& in) -> std::unique_ptr<Profiler> {
        return std::make_unique<ContextProfiler>(in.blocks, in.functions,
                                                 CallTree::default_most_nodes,
                                                 in.options.kept_samples, in.options.seed);
    },
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::ContextList>;
template class shadowprof::model::SectionOf<shadowprof::profile::ContextList>;
