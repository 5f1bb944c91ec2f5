#include "profile/context/kept_samples.h"

#include <algorithm>
#include <cmath>

namespace shadowprof::profile {

void CallRecord::add(const std::vector<FunctionId>& functions, std::uint64_t instructions,
                     std::vector<std::uint64_t> arguments) {
    all_ += instructions;
    const auto known = std::min(functions.size(), most_frames);
    const auto end = functions.begin() + static_cast<std::ptrdiff_t>(known);
    if (std::equal(functions.begin(), end, in_.begin(), in_.end())) {
        if (!stretches_.empty()) stretches_.back().instructions += instructions;
        return;
    }
    const auto same = std::mismatch(functions.begin(), end, in_.begin(), in_.end()).first;
    const auto first = same == end ? end - 1 : same;
    // Not if it was returned to, or is too deep to be listed.
    if (same == end || known < functions.size()) arguments.clear();
    stretches_.push_back({static_cast<std::size_t>(first - functions.begin()),
                          {first, end},
                          instructions,
                          std::move(arguments)});
    in_.assign(functions.begin(), end);
}

std::uint64_t CallRecord::picoseconds_of_instruction() const {
    if (all_ == 0) return 0;
    return static_cast<std::uint64_t>(std::llround(takes_ * 1000 / static_cast<double>(all_)));
}

KeptSamples::Sample* KeptSamples::kept(trace::SampleId id) {
    const auto known = std::ranges::find(samples_, id, &Sample::id);
    return known == samples_.end() ? nullptr : &*known;
}

// Each of those that were met is kept with the same chance (reservoir sampling).
KeptSamples::Sample* KeptSamples::draw(trace::SampleId id) {
    const auto number = random_.below(std::uint64_t{1} << 32);
    if (samples_.size() < most_) return &samples_.emplace_back(Sample{id, number, {}});
    const auto place = random_.below(met_);
    if (place >= most_) return nullptr;
    samples_[place] = {id, number, {}};
    return &samples_[place];
}

std::shared_ptr<CallRecord> KeptSamples::begin(const trace::TraceStart& start) {
    if (most_ == 0) return nullptr;
    auto* sample = kept(start.sample);
    if (!sample) {
        // Another thread of one that was not drawn.
        if (met_ > 0 && start.sample <= last_met_) return nullptr;
        ++met_;
        last_met_ = start.sample;
        sample = draw(start.sample);
    }
    if (!sample) return nullptr;
    return sample->threads.emplace_back(std::make_shared<CallRecord>(
        start.thread, std::max(most_stretches / most_, stretches_at_least)));
}

SampleHotlist KeptSamples::list(const CallTree& tree) const {
    SampleHotlist list;
    for (const auto& sample : samples_) {
        std::uint64_t all = 0;
        for (std::size_t thread = 0; thread < sample.threads.size(); ++thread) {
            const auto& record = *sample.threads[thread];
            all += record.all();
            list.totals.unknown += record.all();
            for (const auto& stretch : record.stretches()) {
                auto& entry = list.entries.emplace_back();
                entry.sample = sample.number;
                entry.thread = thread;
                entry.name = record.thread();
                entry.order = static_cast<std::uint64_t>(&stretch - record.stretches().data());
                entry.depth = stretch.depth;
                for (const auto function : stretch.functions)
                    entry.frames.push_back(tree.entry_of(function));
                entry.arguments = stretch.arguments;
                entry.instructions = stretch.instructions;
                entry.picoseconds = record.picoseconds_of_instruction();
                list.totals.unknown -= stretch.instructions;
            }
        }
        list.totals.add_sample(all);
    }
    return list;
}

}  // namespace shadowprof::profile
