#include "profile/common/segment_counter.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <new>

#include "base/error.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

using trace::BlockId;
using trace::SegmentId;

namespace {

constexpr unsigned first_table_power = 12;
constexpr std::size_t huge_page = 2u << 20;
constexpr std::ptrdiff_t longest_search = 1024;
constexpr std::size_t paths_in_a_piece = 1u << 16;
constexpr std::size_t transitions_ahead = 16;  // are fetched from memory
}  // namespace

SegmentCounter::SegmentCounter(PathFacts& facts, const trace::SegmentTable& segments,
                               std::size_t most_transitions)
    : facts_(facts), segments_(segments), most_transitions_(most_transitions) {
    drained_.counts.blocks_of = [this](const Counts::Path& path) { return blocks_of(path); };
    forget_all_but({});
}

void SegmentCounter::begin(const trace::TraceStart& start) {
    open_[start.trace] = start.from_thread_start ? at_head : somewhere;
}

void SegmentCounter::digest(const trace::SegmentChunk& chunk) {
    facts_.learn();
    auto& state = open_.at(chunk.trace);
    undrained_ += chunk.segments.size();
    const auto* run = chunk.segments.data();
    const auto* const end = run + chunk.segments.size();
    for (const auto& continuation : chunk.continuations) {
        const auto* const run_end = std::find(run, end, trace::segment_discontinuity);
        SHADOWPROF_ASSERT(run_end != end, "a continuation without its discontinuity");
        state = count({run, run_end}, state);
        leave(state, continuation.address, continuation.place, false);
        state = at_head;
        run = run_end + 1;
    }
    state = count({run, end}, state);
}

void SegmentCounter::finish(const trace::TraceEnd& end) {
    const auto open = open_.find(end.trace);
    leave(open->second, end.continuation, end.continuation_place, end.thread_exited);
    open_.erase(open);
}

void SegmentCounter::leave(StateId state, Address next, const trace::Location& place,
                           bool is_whole) {
    const auto path = path_in(state);
    if (path.empty()) return;
    auto& exit = exits_[{path.last(), next}];
    exit.first = place;
    ++exit.second;
    is_whole = is_whole || path.ends_by_going_to(facts_, next, place);
    if (is_whole && path.head_is_known())
        ++concluded_[state];
    else
        ++abandoned_paths_;
}

// --- The table

SegmentCounter::Table::Table(std::size_t size) : size_(size) {
    const auto bytes = size * sizeof(Transition);
    auto* const room = std::aligned_alloc(std::min(bytes, huge_page), bytes);
    if (room == nullptr) throw std::bad_alloc();
    madvise(room, bytes, MADV_HUGEPAGE);
    transitions_.reset(static_cast<Transition*>(room));
    std::uninitialized_fill_n(transitions_.get(), size, Transition{});
}

// --- States

SegmentCounter::StateId SegmentCounter::add(const State& state) {
    states_.push_back(state);
    return StateId{static_cast<std::uint32_t>(states_.size() - 1)};
}

SegmentCounter::StateId SegmentCounter::begun_in_its_segment(const State& state) {
    auto& known = begun_[std::uint64_t{static_cast<std::uint32_t>(state.segment)} << 32 |
                         state.first << 1 | static_cast<std::uint32_t>(state.head_is_known)];
    if (known == StateId{}) known = add(state);
    return known;
}

UnfinishedPath SegmentCounter::path_in(StateId id) const {
    const auto& state = at(id);
    if (state.length == 0) return UnfinishedPath{state.head_is_known};
    return {state.head_is_known, state.key, state.length, segments_.at(state.segment).back()};
}

std::span<BlockId> SegmentCounter::blocks_in(StateId id, std::span<BlockId> room) const {
    auto begin = room.end();
    const auto& state = at(id);
    for (const auto* part = &state; begin != room.end() - state.length; part = &at(part->parent)) {
        const auto of_segment = segments_.at(part->segment).subspan(part->first);
        begin = std::copy_backward(of_segment.begin(), of_segment.end(), begin);
    }
    return {begin, room.end()};
}

SegmentCounter::StateId SegmentCounter::next_after(StateId state, SegmentId segment) {
    SHADOWPROF_ASSERT(static_cast<std::uint32_t>(segment) < segments_.size(),
                      "a discontinuity without its continuation");
    auto path = path_in(state);
    const auto blocks = segments_.at(segment);
    bool begun_here = path.empty();
    std::uint32_t first = 0;
    for (std::uint32_t i = 0; i < blocks.size(); ++i) {
        path.go_on(facts_, blocks[i], [&] {
            begun_here = true;
            first = i;
        });
    }
    const State next{.key = path.key(),
                     .parent = begun_here ? StateId{} : state,
                     .segment = segment,
                     .first = first,
                     .length = static_cast<std::uint8_t>(path.length()),
                     .head_is_known = path.head_is_known()};
    return begun_here ? begun_in_its_segment(next) : add(next);
}

// By a taken backward branch: the only way that does not depend on what came before.
bool SegmentCounter::begins_path(SegmentId before, SegmentId segment) const {
    const auto* from = &facts_.at(segments_.at(before).back());
    for (const auto block : segments_.at(segment)) {
        const auto& to = facts_.at(block);
        if (from->ends_path_by_going_to(to)) return true;
        from = &to;
    }
    return false;
}

// --- Counting

SegmentCounter::StateId SegmentCounter::count(std::span<const SegmentId> run, StateId state) {
    while (run.size() >= lanes_at_a_time * tuning::shortest_lane) {
        const auto part = std::min(run.size(), lanes_at_a_time * tuning::longest_lane);
        state = count_in_lanes(run.first(part), state);
        run = run.subspan(part);
    }
    Lane lane{run.data(), run.data() + run.size(), state};
    follow(lane);
    return lane.state;
}

// Cuts lanes of about the same length, each behind a segment in which a path certainly begins.
SegmentCounter::StateId SegmentCounter::count_in_lanes(std::span<const SegmentId> run,
                                                       StateId state) {
    std::array<Lane, lanes_at_a_time> lanes;
    std::array<StateId, lanes_at_a_time + 1> begun{state};
    const auto length = static_cast<std::ptrdiff_t>(run.size() / lanes_at_a_time);
    const auto* at = run.data();
    const auto* const end = at + run.size();
    std::size_t used = 0;
    for (bool is_last = false; !is_last; ++used) {
        const auto* const wanted = run.data() + length * static_cast<std::ptrdiff_t>(used + 1);
        const auto* cut = std::clamp(wanted, at, end);
        const auto* const last = cut + std::min(end - cut, longest_search);
        while (cut != last && !begins_path(cut[-1], *cut)) ++cut;
        is_last = cut == last || used + 1 == lanes_at_a_time;
        lanes[used] = {at, is_last ? end : cut + 1, begun[used]};
        if (!is_last) begun[used + 1] = next_after(at_head, *cut);
        at = lanes[used].end;
    }
    if (used == lanes_at_a_time) {
        auto steps = end - run.data();
        for (const auto& lane : lanes) steps = std::min(steps, lane.end - lane.at);
        follow(lanes, static_cast<std::size_t>(steps));
    }
    for (std::size_t i = 0; i < used; ++i) {
        follow(lanes[i]);
        SHADOWPROF_ASSERT(i + 1 == used || lanes[i].state == begun[i + 1],
                          "two lanes of a chunk do not meet");
    }
    return lanes[used - 1].state;
}

void SegmentCounter::follow(Lane& lane) {
    for (; lane.at != lane.end; ++lane.at) {
        auto& transition = find_or_learn(key_of(lane.state, *lane.at));
        ++transition.count;
        lane.state = transition.next;
    }
}

// Everything is in registers but the table.
void SegmentCounter::follow(std::array<Lane, lanes_at_a_time>& lanes, std::size_t steps) {
    const auto follow_each = [&]<std::size_t... lane>(std::index_sequence<lane...>) {
        const std::array at{lanes[lane].at...};
        std::array state{lanes[lane].state...};
        auto* table = table_.data();
        auto shift = shift_;
        const auto step = [&](StateId& current, SegmentId segment) {
            const auto key = key_of(current, segment);
            auto* transition = table + home_of(key, shift);
            if (transition->key != key) [[unlikely]] {
                transition = &find_or_learn(key);
                table = table_.data();
                shift = shift_;
            }
            ++transition->count;
            current = transition->next;
        };
        for (std::size_t i = 0; i < steps; ++i) (step(state[lane], at[lane][i]), ...);
        ((lanes[lane].at += steps, lanes[lane].state = state[lane]), ...);
    };
    follow_each(std::make_index_sequence<lanes_at_a_time>{});
}

SegmentCounter::Transition& SegmentCounter::find_or_learn(std::uint64_t key) {
    const auto mask = table_.size() - 1;
    auto at = home_of(key, shift_);
    while (table_[at].key != key && table_[at].key != no_key) at = (at + 1) & mask;
    if (table_[at].key == key) {
        // The more frequent of two that want the same place gets it.
        auto& home = table_[home_of(key, shift_)];
        if (table_[at].count <= home.count) return table_[at];
        std::swap(home, table_[at]);
        return home;
    }
    if (2 * (transitions_ + 1) > table_.size()) {
        make_table(static_cast<unsigned>(std::countr_zero(table_.size())) + 1);
        return find_or_learn(key);
    }
    ++transitions_;
    table_[at] = {key, 0, next_after(state_of(key), segment_of(key))};
    return table_[at];
}

void SegmentCounter::make_table(unsigned power) {
    auto old = std::exchange(table_, Table(std::size_t{1} << power));
    shift_ = 64 - power;
    for (const auto& transition : old)
        if (transition.key != no_key) put(transition);
}

void SegmentCounter::put(const Transition& transition) {
    auto at = home_of(transition.key, shift_);
    while (table_[at].key != no_key) at = (at + 1) & (table_.size() - 1);
    table_[at] = transition;
}

// --- Handing on

SegmentCounter::Size SegmentCounter::drain(const std::function<void(Counts&)>& take) {
    Size size;
    auto& [counts, passes, taken] = drained_;
    const auto hand_on = [&] {
        take(counts);
        counts.clear();
    };
    passes.clear();
    const auto pass = [&](BlockId from, BlockId to, std::uint64_t count) {
        passes[std::uint64_t{static_cast<std::uint32_t>(from)} << 32 |
               static_cast<std::uint32_t>(to)] += count;
    };
    std::vector<std::uint64_t> segment_counts(segments_.size());
    taken.clear();
    for (auto& transition : table_) {
        if (transition.count != 0) taken.push_back(transition);
        transition.count = 0;
    }
    for (std::size_t t = 0; t < taken.size(); ++t) {
        if (t + transitions_ahead < taken.size())
            __builtin_prefetch(&at(state_of(taken[t + transitions_ahead].key)));
        const auto& transition = taken[t];
        const std::uint64_t count = transition.count;
        const auto segment = segment_of(transition.key);
        const auto blocks = segments_.at(segment);
        segment_counts[static_cast<std::uint32_t>(segment)] += count;
        const auto state = state_of(transition.key);
        auto path = path_in(state);
        if (!path.empty()) pass(path.last(), blocks.front(), count);
        Counts::Path next{
            .place = {static_cast<std::uint32_t>(state), static_cast<std::uint32_t>(segment)}};
        for (std::uint32_t i = 0; i < blocks.size(); ++i) {
            path.go_on(facts_, blocks[i], [&] {
                next.key = path.key();
                next.count = count;
                next.place.end = i;
                if (path.head_is_known())
                    counts.paths.push_back(next);
                else
                    counts.unknown_paths += count;
                next.place.state = static_cast<std::uint32_t>(somewhere);
                next.place.begin = i;
            });
        }
        if (counts.paths.size() >= paths_in_a_piece) hand_on();
    }
    const auto& known = facts_.blocks();
    for (std::uint32_t segment = 0; segment < segment_counts.size(); ++segment) {
        if (segment_counts[segment] == 0) continue;
        const auto blocks = segments_.at(SegmentId{segment});
        size.blocks += segment_counts[segment] * blocks.size();
        for (const auto block : blocks)
            size.instructions += segment_counts[segment] * known.at(block).instructions.size();
        for (std::size_t i = 1; i < blocks.size(); ++i)
            pass(blocks[i - 1], blocks[i], segment_counts[segment]);
    }
    passes.for_each([&](std::uint64_t pair, std::uint64_t count) {
        counts.passes.push_back({BlockId{static_cast<std::uint32_t>(pair >> 32)},
                                 BlockId{static_cast<std::uint32_t>(pair)}, count});
    });
    for (const auto& [key, exit] : std::exchange(exits_, {}))
        counts.exits.push_back({key.first, key.second, exit.first, exit.second});
    for (const auto& [state, count] : std::exchange(concluded_, {})) {
        counts.paths.push_back({.key = at(state).key,
                                .count = count,
                                .place = {.state = static_cast<std::uint32_t>(state)}});
    }
    counts.unknown_paths += std::exchange(abandoned_paths_, 0);
    hand_on();
    const bool few_are_taken = transitions_ > tuning::known_for_one_taken * taken.size() &&
                               undrained_ > tuning::segments_for_one_known * transitions_;
    undrained_ = 0;
    if (has_too_many_transitions())
        forget_all_but({});
    else if (few_are_taken)
        forget_all_but(taken);
    return size;
}

// The state's, and those of the segment from `begin` to `end`.
std::span<const BlockId> SegmentCounter::blocks_of(const Counts::Path& path) {
    const auto& [state, segment, begin, end] = path.place;
    const auto own = end == 0 ? std::span<const BlockId>{}
                              : segments_.at(SegmentId{segment}).subspan(begin, end - begin);
    const std::span room{path_blocks_};
    std::copy(own.begin(), own.end(), room.end() - static_cast<std::ptrdiff_t>(own.size()));
    const auto before = blocks_in(StateId{state}, room.first(room.size() - own.size()));
    return room.last(before.size() + own.size());
}

// And where the open Traces are.
void SegmentCounter::forget_all_but(const std::vector<Transition>& kept) {
    const auto states = std::exchange(states_, std::vector<State>(2));
    states_[static_cast<std::uint32_t>(at_head)].head_is_known = true;
    begun_.clear();
    std::vector<StateId> moved_to(states.size());
    const std::function<StateId(StateId)> keep = [&](StateId id) {
        if (id == somewhere || id == at_head) return id;
        auto& moved = moved_to[static_cast<std::uint32_t>(id)];
        if (moved != StateId{}) return moved;
        auto state = states[static_cast<std::uint32_t>(id)];
        if (began_in_its_segment(state)) return moved = begun_in_its_segment(state);
        state.parent = keep(state.parent);
        return moved = add(state);
    };
    for (auto& [trace, state] : open_) state = keep(state);
    transitions_ = kept.size();
    table_ = {};
    make_table(std::max(first_table_power, static_cast<unsigned>(std::bit_width(2 * kept.size()))));
    for (const auto& old : kept)
        put({key_of(keep(state_of(old.key)), segment_of(old.key)), 0, keep(old.next)});
}

}  // namespace shadowprof::profile
