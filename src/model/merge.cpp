#include "model/merge.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "model/merge_facts.h"
#include "model/renumber.h"

namespace shadowprof::model {

namespace {

constexpr std::string_view runtime_code = "[runtime code]";

// Which place in code a location is, whatever run it comes from.
struct Place {
    ModuleIndex module = 0;
    std::uint64_t offset = 0;  // in runtime code with a name: into the function
    std::uint64_t content = 0;
    bool return_address = false;
    std::string name;  // of runtime code
    std::string text;  // of runtime code
    auto operator<=>(const Place&) const = default;
};

Place place_of(const Location& l, ModuleIndex module, bool is_runtime_code) {
    if (!is_runtime_code) return {module, l.offset, l.content, l.return_address, {}, {}};
    if (l.function.empty() || !l.function_offset)
        return {module, l.offset, l.content, l.return_address, {}, l.text};
    return {module, l.offset - *l.function_offset, 0, l.return_address, l.function, l.text};
}

// Both describe the same place. Of what only one knows the knowing one is believed, of what they
// tell differently the greater.
void describe_also(Location& l, const Location& other) {
    if (std::tie(other.function, other.function_offset) > std::tie(l.function, l.function_offset)) {
        l.function = other.function;
        l.function_offset = other.function_offset;
    }
    const auto source = [](const Location& x) {
        std::vector<std::tuple<std::string, std::string, std::uint32_t>> frames;
        for (const auto& f : x.inlined) frames.emplace_back(f.function, f.file, f.line);
        return std::tuple(x.file, x.line, std::move(frames));
    };
    if (source(other) > source(l)) {
        l.file = other.file;
        l.line = other.line;
        l.inlined = other.inlined;
    }
    l.text = std::max(l.text, other.text);
}

// Code made at run time is at many addresses; it is told at the least.
void move_to_least(Location& l, const Location& other) {
    if (std::tie(other.offset, other.content) >= std::tie(l.offset, l.content)) return;
    l.offset = other.offset;
    l.content = other.content;
    l.function_offset = other.function_offset;
}

}  // namespace

class Merger::Sum {
  public:
    void add_profile(NamedProfile named) {
        facts_.add_facts(named);
        auto& p = named.profile;
        const auto modules = numbers_of(p.modules);
        std::vector<LocationIndex> number(p.locations.size());
        for (LocationIndex i = 0; i < p.locations.size(); ++i)
            number[i] = number_of(std::move(p.locations[i]), modules);
        p.each_location([&](LocationIndex& i) { i = number[i]; });
        for (const auto& section : p.sections) {
            auto sum = std::find_if(sections_.begin(), sections_.end(),
                                    [&](const auto& s) { return s.first == section->key(); });
            if (sum == sections_.end())
                sum = sections_.emplace(sum, section->key(), section->make_sum());
            sum->second->add(*section);
        }
    }

    Profile take() {
        Profile p;
        static_cast<RunFacts&>(p) = facts_.take();
        p.modules = std::move(modules_);
        p.locations = std::move(locations_);
        for (const auto& [key, sum] : sections_) p.sections.put(sum->take());
        renumber_modules(p, sort_modules(p.modules));
        sort_locations(p);
        for (const auto& section : p.sections) section->sort();
        note_dropped(p);
        for (const auto& [key, sum] : sections_)
            if (const auto warning = sum->warning(); !warning.empty()) note(p, warning);
        if (const auto defect = defect_of(p)) throw UserError("cannot merge: " + *defect);
        return p;
    }

  private:
    std::vector<ModuleIndex> numbers_of(const std::vector<Module>& modules) {
        std::vector<ModuleIndex> numbers;
        for (const auto& m : modules) {
            const auto [known, is_new] = module_numbers_.try_emplace(
                std::pair(m.path, m.build_id), static_cast<ModuleIndex>(modules_.size()));
            if (is_new) modules_.push_back(m);
            numbers.push_back(known->second);
        }
        return numbers;
    }

    LocationIndex number_of(Location l, const std::vector<ModuleIndex>& modules) {
        l.module = modules[l.module];
        const bool is_runtime_code = modules_[l.module].path == runtime_code;
        const auto [known, is_new] = location_numbers_.try_emplace(
            place_of(l, l.module, is_runtime_code), static_cast<LocationIndex>(locations_.size()));
        if (is_new) {
            locations_.push_back(std::move(l));
        } else {
            auto& same = locations_[known->second];
            if (is_runtime_code) move_to_least(same, l);
            if (is_runtime_code) l.function_offset = same.function_offset;
            describe_also(same, l);
        }
        return known->second;
    }

    static void sort_locations(Profile& p) {
        const auto place = [&](auto i) {
            const auto& l = p.locations[i];
            return std::tie(l.module, l.offset, l.content, l.return_address, l.function, l.text);
        };
        const auto moved_to =
            put_in_order(p.locations, [&](auto a, auto b) { return place(a) < place(b); });
        p.each_location([&](LocationIndex& i) { i = moved_to[i]; });
    }

    static void note_dropped(Profile& p) {
        if (std::any_of(p.sections.begin(), p.sections.end(),
                        [](const auto& section) { return section->has_dropped_entries(); }))
            note(p,
                 "some of the merged profiles had dropped entries (--limit): counts of rare "
                 "entries are too small");
    }
    // Once, however often it is merged again.
    static void note(Profile& p, const std::string& text) {
        auto& warnings = p.run.warnings;
        const auto place = std::lower_bound(warnings.begin(), warnings.end(), text);
        if (place == warnings.end() || *place != text) warnings.insert(place, text);
    }

    FactsSum facts_;
    std::vector<Module> modules_;
    std::map<std::pair<std::string, std::string>, ModuleIndex> module_numbers_;
    std::vector<Location> locations_;
    std::map<Place, LocationIndex> location_numbers_;
    std::vector<std::pair<std::string_view, std::unique_ptr<Section::Sum>>> sections_;
};

Merger::Merger() : sum_(std::make_unique<Sum>()) {}
Merger::~Merger() = default;

void Merger::add(NamedProfile profile) {
    sum_->add_profile(std::move(profile));
}

Profile Merger::take() {
    return sum_->take();
}

}  // namespace shadowprof::model
