#include "profile/sharing/sharing.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "profile/common/hotlists.h"
#include "profile/common/known_blocks.h"
#include "profile/common/tally.h"
#include "profile/common/variables.h"
#include "profile/sharing/sharing_section.h"
#include "profile/sharing/sharing_words.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

namespace {

struct OfBlock {
    struct Access {
        std::uint16_t value = 0;  // which of the block's values is its address
        LineWindow::Access access;
    };
    std::vector<Access> accesses;
    std::size_t values = 0;
};

struct Key {
    Sharing kind{};
    PlaceNumber place = 0, other = 0;
    SharedMemory memory{};
    std::optional<Location> data, other_data;
    auto operator<=>(const Key&) const = default;
};

struct Found {
    Statistics statistics;
    std::uint64_t pending = 0, windows = 0;
    std::uint32_t offset = 0, other_offset = 0;
};

class SharingProfiler : public Profiler {
  public:
    SharingProfiler(const trace::BlockTable& blocks, FunctionMap& variables,
                    SharingClock::time_point (*now)(), SharingFrom from)
        : known_(blocks), variables_(variables), now_(now), from_(from) {}

    std::string_view name() const override { return "sharing"; }
    trace::CapturePlan captures() const override {
        return sees_all() ? trace::Capture::memory_addresses : trace::Capture::latency;
    }
    std::unique_ptr<Reader> open(const trace::TraceStart& start) override;
    // In mode full each Trace is a sample: the same thread may come again as another one, and would
    // share lines with itself.
    void end_sample(trace::SampleId sample, std::uint64_t) override {
        if (sees_all())
            close_window(window_, now_() - began_);
        else
            close_window_of(sample);
        end_part();
    }
    void yield(Hotlists& into, Seen seen) override;

  private:
    class AddressReader;

    struct Window {
        LineWindow lines;
        std::set<std::uint32_t> threads;
        std::uint64_t accesses = 0;
    };

    bool sees_all() const { return from_ == SharingFrom::all_accesses; }
    // Of a block the slots with addresses.
    const std::vector<trace::Slot>& slots_of(const trace::Block& block) const {
        return sees_all() ? block.slots : block.accesses;
    }
    OfBlock learn(const trace::Block& block);
    void begin_window() {
        if (window_.lines.empty()) began_ = now_();
    }
    void note_chunk(trace::TraceId trace);
    void close_window(Window& window, SharingClock::duration lasted);
    void close_window_of(trace::SampleId sample);
    void add(const LineWindow::Shared& shared);
    void end_part();

    KnownBlocks<OfBlock> known_;
    Variables variables_;
    SharingClock::time_point (*now_)();
    SharingFrom from_;
    PlaceNumbers places_;

    Window window_;                                 // where all accesses are seen
    SharingClock::time_point began_;                // that one
    std::set<trace::TraceId> traces_, have_come_;   // that run; of them those that gave a chunk
    std::map<trace::SampleId, Window> of_samples_;  // that several threads take part in

    std::map<Key, Found> found_;
    std::uint64_t accesses_ = 0;  // in windows of several threads, since the last sample ended
    std::uint64_t windows_ = 0, windows_of_several_ = 0;
    SharingClock::duration in_windows_{};
    Totals totals_;
};

class SharingProfiler::AddressReader : public Reader {
  public:
    // A thread has several Traces where it left the code that is recorded, and came back.
    AddressReader(SharingProfiler& profiler, const trace::TraceStart& start, Window& window)
        : profiler_(profiler),
          window_(window),
          trace_(start.trace),
          thread_(start.state.tid >= 0 ? static_cast<std::uint32_t>(start.state.tid)
                                       : static_cast<std::uint32_t>(start.trace)) {
        profiler.traces_.insert(trace_);
    }
    ~AddressReader() override { profiler_.traces_.erase(trace_); }
    void digest(const trace::TraceChunk& chunk) override {
        profiler_.begin_window();
        window_.threads.insert(thread_);
        const auto use = [this](const OfBlock& block, const std::uint64_t* values) {
            for (const auto& known : block.accesses) {
                auto access = known.access;
                access.address = values[known.value];
                window_.lines.add(thread_, access);
            }
            window_.accesses += block.accesses.size();
        };
        profiler_.known_.read(
            chunk, [this](const trace::Block& block) { return profiler_.learn(block); }, use,
            [] {});
        if (profiler_.sees_all()) profiler_.note_chunk(trace_);
    }
    void finish(const trace::TraceEnd&) override {}

  private:
    SharingProfiler& profiler_;
    Window& window_;
    trace::TraceId trace_;
    std::uint32_t thread_;
};

std::unique_ptr<Reader> SharingProfiler::open(const trace::TraceStart& start) {
    if (sees_all()) return std::make_unique<AddressReader>(*this, start, window_);
    if (!start.has_company || start.contents != trace::Contents::accesses)
        return std::make_unique<NothingToRead>();
    return std::make_unique<AddressReader>(*this, start, of_samples_[start.sample]);
}

OfBlock SharingProfiler::learn(const trace::Block& block) {
    variables_.learn(block);
    OfBlock learnt;
    const auto& slots = slots_of(block);
    learnt.values = slots.size();
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const auto& slot = slots[i];
        if (slot.kind != trace::Capture::memory_addresses) continue;
        const auto& instruction = block.instructions[slot.instruction];
        const auto& operand = instruction.operands()[slot.operand];
        const auto bytes = operand.bits / 8u;
        const bool writes = is_certain_store(instruction, operand);
        if (bytes == 0 || bytes > cache_line || !(writes || trace::is_certain_load(operand)))
            continue;
        auto& access = learnt.accesses.emplace_back();
        access.value = static_cast<std::uint16_t>(i);
        access.access = {.bytes = bytes,
                         .place = places_.of(block.place_of(instruction)),
                         .writes = writes,
                         .is_locked = instruction.lock,
                         .is_on_stack = operand.memory.base.is_general(decoder::rsp)};
    }
    return learnt;
}

void SharingProfiler::note_chunk(trace::TraceId trace) {
    have_come_.insert(trace);
    const auto lasted = now_() - began_;
    const bool have_all = std::ranges::includes(have_come_, traces_);
    if ((lasted >= tuning::shortest_window && have_all) || lasted >= tuning::longest_window ||
        window_.lines.size() >= tuning::most_touches)
        close_window(window_, lasted);
}

void SharingProfiler::close_window_of(trace::SampleId sample) {
    const auto window = of_samples_.find(sample);
    if (window == of_samples_.end()) return;
    close_window(window->second, {});  // how long it was nobody has timed
    of_samples_.erase(window);
}

// What one thread alone does says nothing of what it shares: such accesses are not counted.
void SharingProfiler::close_window(Window& window, SharingClock::duration lasted) {
    if (!window.lines.empty()) {
        const bool is_of_several = window.threads.size() > 1;
        ++windows_;
        windows_of_several_ += is_of_several;
        if (is_of_several) accesses_ += window.accesses;
        in_windows_ += lasted;
    }
    window.lines.close([this](const LineWindow::Shared& shared) { add(shared); });
    have_come_.clear();
    window.threads.clear();
    window.accesses = 0;
}

void SharingProfiler::add(const LineWindow::Shared& shared) {
    Key key;
    key.kind = shared.kind;
    key.place = shared.place;
    key.other = shared.other_place;
    key.memory = shared.is_on_stack ? SharedMemory::stack : SharedMemory::other;
    if (const auto data = variables_.at(shared.address)) {
        key.memory = SharedMemory::variable;
        if (found_.size() < tuning::most_entries_by_variable) {
            key.data = data;
            key.other_data = variables_.at(shared.other_address);
        }
    }
    auto& found = found_[key];
    found.pending += shared.count;
    ++found.windows;
    found.offset = static_cast<std::uint32_t>(shared.address % cache_line);
    found.other_offset = static_cast<std::uint32_t>(shared.other_address % cache_line);
}

// What was found since the last sample ended is of one sample.
void SharingProfiler::end_part() {
    if (accesses_ == 0) return;
    const auto all = std::exchange(accesses_, 0);
    for (auto& [key, found] : found_)
        if (found.pending != 0)
            found.statistics.add_sample(std::min(std::exchange(found.pending, 0), all), all);
    totals_.add_sample(all);
}

void SharingProfiler::yield(Hotlists& into, Seen seen) {
    if (sees_all()) close_window(window_, now_() - began_);
    while (!of_samples_.empty()) close_window_of(of_samples_.begin()->first);
    end_part();
    SharingHotlist list;
    list.totals = totals_;
    list.totals.exhaustive = seen == Seen::everything;
    list.windows = windows_;
    list.shared = windows_of_several_;
    list.nanoseconds = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(in_windows_).count());
    for (const auto& [key, found] : found_) {
        SharingHotlist::Entry entry;
        entry.kind = key.kind;
        entry.location = places_[key.place];
        entry.other = places_[key.other];
        entry.memory = key.memory;
        entry.data = key.data;
        entry.other_data = key.other_data;
        entry.offset = found.offset;
        entry.other_offset = found.other_offset;
        entry.statistics = found.statistics;
        entry.windows = found.windows;
        list.entries.push_back(std::move(entry));
    }
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

}  // namespace

std::unique_ptr<Profiler> make_sharing_profiler(const trace::BlockTable& blocks,
                                                FunctionMap& variables,
                                                SharingClock::time_point (*now)(),
                                                SharingFrom from) {
    return std::make_unique<SharingProfiler>(blocks, variables, now, from);
}

const ProfileType sharing_type{
    .name = "sharing",
    .collected = ProfileType::Collected::if_asked_for,
    .section = section_type<SharingSection>(),
    .make_profiler = [](const ProfilerInputs& in) -> std::unique_ptr<Profiler> {
        return make_sharing_profiler(
            in.blocks, in.functions, [] { return SharingClock::now(); },
            in.options.sees_all_accesses ? SharingFrom::all_accesses
                                         : SharingFrom::samples_in_company);
    },
    .chapter = model::chapter_of<SharingSection, sharing_chapter>,
    .rank = 8,
};

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::SharingList>;
template class shadowprof::model::SectionOf<shadowprof::profile::SharingList>;
