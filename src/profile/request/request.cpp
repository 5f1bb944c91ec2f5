#include "profile/request/request.h"

#include <algorithm>
#include <set>
#include <utility>

#include "profile/request/request_words.h"
#include "profile/time/stack_context.h"
#include "profile/tuning.h"

namespace shadowprof::profile {

namespace {

using Kind = trace::RequestSight::Kind;

constexpr auto* other_values = "(others)";

// Distinct for distinct requests: no text has a zero in it.
std::string text_of(const trace::Request& request) {
    auto text = request.trace + '\0' + request.span;
    for (const auto& [name, value] : request.attributes) {
        text += '\0';
        text += name;
        text += '\0';
        text += value;
    }
    return text;
}

// The keys with most weight.
template <class Key>
std::set<Key> largest(const std::map<Key, std::uint64_t>& weights, std::size_t most) {
    std::vector<std::pair<std::uint64_t, Key>> order;
    for (const auto& [key, weight] : weights) order.emplace_back(weight, key);
    std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.first > b.first; });
    if (order.size() > most) order.resize(most);
    std::set<Key> kept;
    for (const auto& [weight, key] : order) kept.insert(key);
    return kept;
}

void keep_longest(std::vector<RequestHotlist::Entry>& entries) {
    std::map<std::string, std::uint64_t> spans;
    std::map<std::string, std::map<std::string, std::uint64_t>> values;
    for (const auto& e : entries) {
        if (!e.span.empty()) spans[e.span] += e.weight();
        for (const auto& [name, value] : e.attributes) values[name][value] += e.weight();
    }
    const auto kept_spans = largest(spans, tuning::most_spans);
    std::map<std::string, std::set<std::string>> kept_values;
    for (const auto& [name, of_name] : values)
        kept_values[name] = largest(of_name, tuning::most_values_of_attribute);
    for (auto& e : entries) {
        // Without attributes it would look as if there had been no request.
        if (!kept_spans.contains(e.span)) {
            if (e.attributes.empty() && !e.span.empty())
                e.span = other_values;
            else
                e.span.clear();
            e.trace.clear();
        }
        for (auto& [name, value] : e.attributes)
            if (!kept_values[name].contains(value)) value = other_values;
    }
}

// Those that have become the same.
std::vector<RequestHotlist::Entry> put_together(std::vector<RequestHotlist::Entry> entries) {
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
        return model::identity_of(a) < model::identity_of(b);
    });
    std::vector<RequestHotlist::Entry> kept;
    for (auto& e : entries) {
        if (kept.empty() || model::identity_of(kept.back()) != model::identity_of(e)) {
            kept.push_back(std::move(e));
            continue;
        }
        kept.back().statistics.merge(e.statistics);
        kept.back().waiting.merge(e.waiting);
        kept.back().instructions.merge(e.instructions);
    }
    return kept;
}

}  // namespace

// Of Traces whose blocks come one by one.
class RequestProfiler::BlockReader : public Reader {
  public:
    explicit BlockReader(Open& sample) : sample_(sample) {}
    void digest(const trace::TraceChunk& chunk) override {
        for (const auto block : chunk.blocks)
            if (block != trace::discontinuity) sample_.executions.add(block, 1);
    }
    void finish(const trace::TraceEnd&) override {}

  private:
    Open& sample_;
};

std::size_t RequestProfiler::KeyHash::operator()(const Key& key) const {
    auto hash =
        combine_hashes(std::hash<std::string>{}(key.thread), std::hash<std::string>{}(key.call));
    hash = combine_hashes(hash, key.request);
    for (const auto& frame : key.frames) hash = combine_hashes(hash, hash_of(frame));
    return hash;
}

std::unique_ptr<Reader> RequestProfiler::open(const trace::TraceStart& start) {
    if (start.contents != trace::Contents::everything || !samples_.is_open(start.sample))
        return std::make_unique<NothingToRead>();
    return std::make_unique<BlockReader>(samples_.open(start.sample));
}

void RequestProfiler::see_request(trace::SampleId sample, const trace::RequestSight& sight) {
    samples_.open(sample).sights.push_back(sight);
}

void RequestProfiler::count(trace::SampleId sample, const Counts& counts) {
    if (samples_.is_open(sample)) samples_.open(sample).executions.add(counts);
}

void RequestProfiler::end_sample(trace::SampleId sample, std::uint64_t weight) {
    samples_.close(sample, [&](Open& open) {
        const auto sights = std::exchange(open.sights, {});
        std::vector<std::uint32_t> requests;
        for (const auto& sight : sights)
            if (sight.kind != Kind::unknown) requests.push_back(number_of(sight.request));
        std::uint64_t instructions = 0;
        open.executions.drain([&](trace::BlockId block, std::uint64_t times) {
            instructions += times * weight * blocks_.at(block).instructions.size();
        });
        if (instructions == 0) return;
        // Of one of its threads, so that it is one count.
        if (requests.empty())
            instructions_.add_unknown(instructions);
        else
            instructions_.add({requests[random_.below(requests.size())], {}, {}, {}}, instructions);
        instructions_.end_sample();
    });
}

std::uint32_t RequestProfiler::number_of(const std::shared_ptr<const trace::Request>& request) {
    if (!request) return 0;
    const auto next = static_cast<std::uint32_t>(requests_.size());
    const auto text = text_of(*request);
    if (const auto known = numbers_.find(text); known != numbers_.end()) return known->second;
    if (next < tuning::most_requests) {
        requests_.push_back(*request);
        return numbers_[text] = next;
    }
    trace::Request others{{}, {}, request->attributes};
    if (others.attributes.empty()) others.span = other_values;
    const auto [known, is_new] = numbers_.try_emplace(text_of(others), next);
    if (is_new) requests_.push_back(std::move(others));
    return known->second;
}

void RequestProfiler::look_for_request(const ClockLook& look, const trace::RequestSight& sight) {
    if (sight.kind == Kind::unpublished) return;
    auto& tally = look.state && is_waiting(*look.state) ? waiting_ : on_processor_;
    if (!look.state || sight.kind == Kind::unknown)
        tally.add_unknown(look.nanoseconds);
    else if (!sight.request)
        tally.add({}, look.nanoseconds);
    else
        tally.add(
            {number_of(sight.request), look.thread, look.call,
             context_of(look.stack, [&](const auto& at) { return functions_.function_of(at); })},
            look.nanoseconds);
    tally.end_sample();
}

std::vector<RequestHotlist::Entry> RequestProfiler::entries() const {
    std::vector<RequestHotlist::Entry> all;
    const auto add = [&](const auto& tally, Statistics RequestHotlist::Entry::*of_entry) {
        for (const auto& [key, statistics, pending] : tally.entries()) {
            const auto& request = requests_[key.request];
            auto& e = all.emplace_back();
            for (const auto& [name, value] : request.attributes) e.attributes[name] = value;
            e.trace = request.trace;
            e.span = request.span;
            e.thread = key.thread;
            e.call = key.call;
            if (key.request != 0) e.frames = key.frames;
            e.*of_entry = statistics;
        }
    };
    add(on_processor_, &RequestHotlist::Entry::statistics);
    add(waiting_, &RequestHotlist::Entry::waiting);
    add(instructions_, &RequestHotlist::Entry::instructions);
    return all;
}

void RequestProfiler::yield(Hotlists& into, Seen /*what is seen of Traces*/) {
    while (const auto open = samples_.first_open()) end_sample(*open, 1);
    RequestHotlist list;
    list.totals = on_processor_.totals(Seen::samples);
    list.waiting = waiting_.totals(Seen::samples);
    list.instructions = instructions_.totals(Seen::samples);
    if (list.totals.samples + list.waiting.samples + list.instructions.samples == 0) return;
    auto all = entries();
    keep_longest(all);
    list.entries = put_together(std::move(all));
    sort_hotlist(list.entries);
    into.add(std::move(list));
}

extern const ProfileType request_type;
const ProfileType request_type{
    .name = "request",
    .section = section_type<RequestSection>(),
    .make_profiler = [](const ProfilerInputs& in) -> std::unique_ptr<Profiler> {
        return std::make_unique<RequestProfiler>(in.blocks, in.functions);
    },
    .reads_clock = true,
    .chapter = model::chapter_of<RequestSection, request_chapter>,
    .rank = 1,
};

template struct RequestList<model::LocationIndex>;
template struct RequestList<Location>;

}  // namespace shadowprof::profile

template class shadowprof::model::Found<shadowprof::profile::RequestList>;
template class shadowprof::model::SectionOf<shadowprof::profile::RequestList>;
