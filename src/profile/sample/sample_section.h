// The calls and returns of some samples, one after the other, in hotlists and profiles. The
// profiler of contexts finds them (context/kept_samples.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "profile/common/frames_field.h"

namespace shadowprof::profile {

// Instructions that a thread executed in one function, until it called another or returned.
template <class Place>
struct SampleEntry {
    std::uint64_t sample = 0;  // unique among samples and runs
    std::uint64_t thread = 0;  // of those of the sample, in the order in which they began
    std::string name;          // of the thread
    std::uint64_t order = 0;   // 0: the first of the thread
    // So many of the functions that the thread was in before it is still in, from the outermost;
    // in these are the frames, of which the last one executed the instructions.
    std::uint64_t depth = 0;
    std::vector<Place> frames;
    // With which the last of these was called, if it was, and that is known: of each of its
    // parameters (model::Location), or, as profilers find them, of trace::argument_registers.
    std::vector<std::uint64_t> arguments;
    std::uint64_t instructions = 0;
    // That an instruction of the thread takes on average, in this sample; 0: not known.
    std::uint64_t picoseconds = 0;
    bool operator==(const SampleEntry&) const = default;

    static constexpr auto fields() {
        using Words = model::ListOf<model::Hex>;
        return std::tuple(
            model::identity_field("sample", &SampleEntry::sample),
            model::identity_field("thread", &SampleEntry::thread),
            model::identity_field("order", &SampleEntry::order),
            model::identity_field("name", &SampleEntry::name),
            model::identity_field("depth", &SampleEntry::depth),
            model::identity_field("picoseconds", &SampleEntry::picoseconds),
            FramesField<SampleEntry, Place>(&SampleEntry::frames),
            model::IdentityField<SampleEntry, std::vector<std::uint64_t>, Words>{
                model::field<Words>("arguments", &SampleEntry::arguments).unless_empty()},
            model::sum_field("instructions", &SampleEntry::instructions));
    }
    std::uint64_t weight() const { return instructions; }
};

// Totals: instructions of these samples. Those behind the last entry of a thread are unknown.
template <class Place>
struct SampleList : model::Hotlist<SampleEntry<Place>> {
    static constexpr std::string_view section_key = "samples";
    static constexpr bool is_kept_whole = true;  // without its short entries it would mean nothing
    static constexpr auto fields() { return SampleList::fields_with(); }
    bool operator==(const SampleList&) const = default;
};

using SampleHotlist = model::Found<SampleList>;
using SampleSection = model::SectionOf<SampleList>;

// The stretches of one thread in one sample, in order.
struct ThreadOfSample {
    std::uint64_t sample = 0, instructions = 0;
    std::vector<const SampleSection::Entry*> stretches;

    // Nothing if it is not known how fast the program is.
    std::optional<double> nanoseconds_of_instruction() const;
};
std::vector<ThreadOfSample> threads_of(const SampleSection& list);

}  // namespace shadowprof::profile

extern template class shadowprof::model::Found<shadowprof::profile::SampleList>;
extern template class shadowprof::model::SectionOf<shadowprof::profile::SampleList>;
