// Counts what Traces of segments (trace/segment.h) did, at a few nanoseconds a segment.
//
// A program runs the same segments in the same circumstances again and again. What a segment adds
// to the hotlists depends on nothing but itself and the path the thread is in when it begins, so
// the counter is a machine whose states are unfinished paths and whose input are segments:
//
//     (state, segment) -> next state, count
//
// The first time a state meets a segment, the path rule says what the next state is; from then on
// that transition is found in a hash table and counted. What all of that means in paths and passes
// from block to block is worked out when the counts are handed on: each transition once, however
// often it was taken.
//
// States form a trie: a segment that begins no path leads to a child of the state it met. One that
// does leads to a state that depends on the segment alone. Of its path a state has only what going
// on takes; the blocks are found along the trie for who wants them.
//
// That also makes counting fast. Following one thread from state to state means waiting for the
// table each time: nanoseconds if it fits a near cache, tens if it does not. But where a segment
// certainly begins a path the state behind it is known without knowing the one before, so a chunk
// is cut there into a few lanes that are followed at the same time; what their lookups wait for
// overlaps.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "profile/common/counts.h"
#include "profile/path/unfinished_path.h"
#include "trace/segment.h"
#include "trace/trace.h"

namespace shadowprof::profile {

// Of the threads of one sample. Several counters may learn the same facts, one at a time.
class SegmentCounter {
  public:
    static constexpr std::size_t default_most_transitions = 1u << 20;
    // When there are more, the counter asks to be drained; it needs about 100 bytes for each.
    SegmentCounter(PathFacts& facts, const trace::SegmentTable& segments,
                   std::size_t most_transitions = default_most_transitions);
    SegmentCounter(const SegmentCounter&) = delete;  // its counts ask it for blocks
    SegmentCounter& operator=(const SegmentCounter&) = delete;

    void begin(const trace::TraceStart& start);
    void digest(const trace::SegmentChunk& chunk);
    void finish(const trace::TraceEnd& end);

    std::size_t transitions() const { return transitions_; }  // known
    bool should_be_drained() const {
        return has_too_many_transitions() || undrained_ > most_undrained;
    }
    // Of what was executed.
    struct Size {
        std::uint64_t blocks = 0;
        std::uint64_t instructions = 0;
    };
    // Gives what was counted, in pieces, and forgets it; tells how much it was. Transitions are
    // kept, unless there are too many: they will be met again. Where few of those known have been
    // taken, only these are: following waits for memory all the longer, the farther apart lies what
    // it needs.
    Size drain(const std::function<void(Counts&)>& take);

  private:
    enum class StateId : std::uint32_t {};
    // Where nothing of a path has been seen yet: it is not, or is, known that the next block is a
    // head.
    static constexpr StateId somewhere{0}, at_head{1};

    // The blocks of the parent's path, if the path began before this segment, and those of the
    // segment from `first` on.
    struct State {
        PathKey key = 0;
        StateId parent{};
        trace::SegmentId segment{};
        std::uint32_t first = 0;
        std::uint8_t length = 0;  // of the path
        bool head_is_known = false;
    };
    struct alignas(16) Transition {
        std::uint64_t key = no_key;
        std::uint32_t count = 0;
        StateId next{};
    };
    // Segments: no count overflows, and what is known is never old.
    static constexpr std::uint64_t most_undrained = 1u << 24;
    static constexpr std::uint64_t no_key = ~std::uint64_t{0};
    // Lookups go all over it: in small pages, most of them would wait for the page tables, too.
    class Table {
      public:
        Table() = default;
        explicit Table(std::size_t size);
        std::size_t size() const { return size_; }
        Transition* data() { return transitions_.get(); }
        Transition& operator[](std::size_t i) { return transitions_.get()[i]; }
        Transition* begin() { return data(); }
        Transition* end() { return data() + size_; }

      private:
        struct Free {
            void operator()(Transition* transitions) const { std::free(transitions); }
        };
        std::unique_ptr<Transition, Free> transitions_;
        std::size_t size_ = 0;
    };
    static std::uint64_t key_of(StateId state, trace::SegmentId segment) {
        return std::uint64_t{static_cast<std::uint32_t>(state)} << 32 |
               static_cast<std::uint32_t>(segment);
    }

    static StateId state_of(std::uint64_t key) {
        return StateId{static_cast<std::uint32_t>(key >> 32)};
    }
    static trace::SegmentId segment_of(std::uint64_t key) {
        return trace::SegmentId{static_cast<std::uint32_t>(key)};
    }

    static constexpr std::size_t lanes_at_a_time = 16;
    struct Lane {
        const trace::SegmentId* at = nullptr;
        const trace::SegmentId* end = nullptr;
        StateId state{};
    };

    const State& at(StateId id) const { return states_[static_cast<std::uint32_t>(id)]; }
    StateId add(const State& state);
    StateId begun_in_its_segment(const State& state);
    bool began_in_its_segment(const State& state) const {
        return segments_.at(state.segment).size() - state.first == state.length;
    }
    UnfinishedPath path_in(StateId state) const;
    // Those are copied to the end of the room.
    std::span<trace::BlockId> blocks_in(StateId state, std::span<trace::BlockId> room) const;
    std::span<const trace::BlockId> blocks_of(const Counts::Path& path);
    StateId next_after(StateId state, trace::SegmentId segment);
    bool begins_path(trace::SegmentId before, trace::SegmentId segment) const;

    bool has_too_many_transitions() const { return transitions_ > most_transitions_; }
    StateId count(std::span<const trace::SegmentId> run, StateId state);
    StateId count_in_lanes(std::span<const trace::SegmentId> run, StateId state);
    void follow(Lane& lane);
    void follow(std::array<Lane, lanes_at_a_time>& lanes, std::size_t steps);
    Transition& find_or_learn(std::uint64_t key);
    void make_table(unsigned power);
    void put(const Transition& transition);  // which is not there
    static std::size_t home_of(std::uint64_t key, unsigned shift) {
        return key * 0x9e3779b97f4a7c15u >> shift;
    }

    void leave(StateId state, Address next, const trace::Location& place, bool is_whole);
    void forget_all_but(const std::vector<Transition>& kept);

    PathFacts& facts_;
    const trace::SegmentTable& segments_;
    std::size_t most_transitions_;

    std::vector<State> states_;
    FlatMap<StateId> begun_;  // states whose path began in their segment
    Table table_;             // at most half full
    unsigned shift_ = 0;
    std::size_t transitions_ = 0;
    std::uint64_t undrained_ = 0;  // segments

    // Of the last time, for their room: to get it anew each time takes longer than to use it.
    struct {
        Counts counts;
        FlatMap<std::uint64_t> passes;
        std::vector<Transition> taken;
    } drained_;
    std::array<trace::BlockId, most_blocks_in_path> path_blocks_{};  // of one

    std::map<trace::TraceId, StateId> open_;
    // What is no transition.
    using ExitKey = std::pair<trace::BlockId, Address>;
    std::map<ExitKey, std::pair<trace::Location, std::uint64_t>> exits_;
    std::map<StateId, std::uint64_t> concluded_;  // paths that an exit ended
    std::uint64_t abandoned_paths_ = 0;
};

}  // namespace shadowprof::profile
