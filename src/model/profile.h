// model: what a run found, as plain data: the Profile and its file (shadowprof-profile(5)). It
// knows what a section is and nothing of any one profile type: those are in the room above.
//
// Two invariants hold for every Profile that was assembled or read, so that nobody else checks:
//   - every index points at something: modules, locations, parts;
//   - totals add up: the counts of a section's entries and its `unknown` are its total.
// A third one is of values: nothing is called exhaustive of which less was read than counted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/run_facts.h"
#include "model/section.h"

namespace shadowprof::model {

inline constexpr std::string_view schema_name = "shadowprof-profile";
inline constexpr std::uint64_t schema_version = 1;

// What was seen of one process of several, or of several of one program.
struct Part {
    Coverage coverage;
    Sections sections;
    bool operator==(const Part&) const = default;
};

struct Profile : RunFacts {
    std::vector<Module> modules;
    std::vector<Location> locations;
    Sections sections;  // of all processes
    // If there was more than one.
    std::vector<Process> processes;
    OtherProcesses other_processes;
    std::vector<Part> parts;
    bool operator==(const Profile&) const = default;

    const Location& at(LocationIndex i) const { return locations[i]; }

    // Seconds that all of them computed, looked at or not; 0 if there was one.
    double time_of_processes() const {
        auto all = other_processes.cpu;
        for (const auto& process : processes) all += process.cpu;
        return all;
    }

    // The section of one profile type, or nullptr if the profile has none.
    template <class OfType>
    const OfType* find() const {
        return static_cast<const OfType*>(sections.find(OfType::section_key));
    }
    template <class OfType>
    OfType* find() {
        return static_cast<OfType*>(sections.find(OfType::section_key));
    }
    // Empty; takes the place of one that is there.
    template <class OfType>
    OfType& add() {
        return static_cast<OfType&>(sections.put(std::make_unique<OfType>()));
    }
    template <class OfType>
    void remove() {
        sections.remove(OfType::section_key);
    }
    void each_location(const std::function<void(LocationIndex&)>& use) {
        for (const auto& section : sections) section->each_location(use);
        for (const auto& part : parts)
            for (const auto& section : part.sections) section->each_location(use);
    }
};

struct NamedProfile {
    std::string name;  // in messages: the file
    Profile profile;
};

// The invariants above: why they do not hold, or nothing.
std::optional<std::string> defect_of(const Profile& profile);

}  // namespace shadowprof::model
