#include "model/merge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "model/merge_facts.h"
#include "model/renumber.h"
#include "model/sums.h"

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
    l.parameters = std::max(l.parameters, other.parameters);
}

// Code made at run time is at many addresses; it is told at the least.
void move_to_least(Location& l, const Location& other) {
    if (std::tie(other.offset, other.content) >= std::tie(l.offset, l.content)) return;
    l.offset = other.offset;
    l.content = other.content;
    l.function_offset = other.function_offset;
}

}  // namespace

// Sections of one kind, added up each.
class SumOfSections {
  public:
    void add(const Sections& sections) {
        for (const auto& section : sections) {
            auto sum = std::find_if(sums_.begin(), sums_.end(),
                                    [&](const auto& s) { return s.first == section->key(); });
            if (sum == sums_.end()) sum = sums_.emplace(sum, section->key(), section->make_sum());
            sum->second->add(*section);
        }
    }
    // Not yet in order.
    Sections take() const {
        Sections sections;
        for (const auto& [key, sum] : sums_) sections.put(sum->take());
        return sections;
    }
    template <class Use>
    void each_warning(Use use) const {
        for (const auto& [key, sum] : sums_)
            if (const auto warning = sum->warning(); !warning.empty()) use(warning);
    }

  private:
    std::vector<std::pair<std::string_view, std::unique_ptr<Section::Sum>>> sums_;
};

// The processes of a run, or of many, and what was seen of them.
class SumOfProcesses {
  public:
    explicit SumOfProcesses(Merger::From from) : keeps_apart_(from == Merger::From::one_run) {}

    void add(const Profile& p) {
        std::map<std::uint32_t, std::uint32_t> moved_to;
        for (const auto& process : p.processes) {
            auto& row = row_of(process);
            if (!process.part) continue;
            const auto [moved, is_new] = moved_to.try_emplace(*process.part);
            if (is_new) {
                moved->second = part_of(row);
                parts_[moved->second].add(p.parts[*process.part]);
            }
            row.part = moved->second;
        }
        add_up(others_.count, p.other_processes.count);
        add_time(others_.cpu, p.other_processes.cpu);
    }

    void take(Profile& into) {
        if (!keeps_apart_) sort();
        into.processes = std::move(rows_);
        into.other_processes = others_;
        for (auto& part : parts_) into.parts.push_back({part.coverage, part.sections.take()});
    }

  private:
    struct PartSum {
        Coverage coverage;
        SumOfSections sections;
        bool is_empty = true;

        void add(const Part& part) {
            if (std::exchange(is_empty, false))
                coverage = part.coverage;
            else
                add_coverage(coverage, part.coverage);
            sections.add(part.sections);
        }
    };

    Process& row_of(const Process& process) {
        const auto known = std::find_if(rows_.begin(), rows_.end(), [&](const Process& row) {
            return row.program == process.program && (!keeps_apart_ || row.pid == process.pid);
        });
        if (known == rows_.end()) {
            auto& row = rows_.emplace_back(process);
            row.part.reset();
            return row;
        }
        add_up(known->samples, process.samples);
        if (keeps_apart_) return *known;
        add_up(known->count, process.count);
        known->pid = known->parent = 0;
        known->start = std::min(known->start, process.start);
        known->name = std::min(known->name, process.name);
        known->end.reset();
        add_time(known->cpu, process.cpu);
        for (const auto& [name, time] : process.threads) add_time(known->threads[name], time);
        if (known->not_seen && process.not_seen)
            known->not_seen = std::min(*known->not_seen, *process.not_seen);
        else
            known->not_seen.reset();
        return *known;
    }

    // Sums of fractions would depend on their order.
    static void add_time(double& into, double more) {
        constexpr double nanoseconds = 1e9;
        into = (std::round(into * nanoseconds) + std::round(more * nanoseconds)) / nanoseconds;
    }

    void sort() {
        std::sort(rows_.begin(), rows_.end(),
                  [](const auto& a, const auto& b) { return a.program < b.program; });
        std::vector<PartSum> in_order;
        for (auto& row : rows_) {
            if (!row.part) continue;
            in_order.push_back(std::move(parts_[*row.part]));
            row.part = static_cast<std::uint32_t>(in_order.size() - 1);
        }
        parts_ = std::move(in_order);
    }

    // Where what was seen of the process is added up.
    std::uint32_t part_of(const Process& row) {
        if (row.part) return *row.part;
        auto& of_program = parts_of_[row.program];
        if (of_program.size() < (keeps_apart_ ? most_apart + 1 : 1)) {
            of_program.push_back(static_cast<std::uint32_t>(parts_.size()));
            parts_.emplace_back();
        }
        return of_program.back();
    }

    static constexpr std::size_t most_apart = 8;

    bool keeps_apart_;
    std::vector<Process> rows_;
    OtherProcesses others_;
    std::vector<PartSum> parts_;
    std::map<std::string, std::vector<std::uint32_t>> parts_of_;  // by program
};

class Merger::Sum {
  public:
    explicit Sum(From from) : processes_(from) {}

    void add_profile(NamedProfile named) {
        facts_.add_facts(named);
        auto& p = named.profile;
        const auto modules = numbers_of(p.modules);
        std::vector<LocationIndex> number(p.locations.size());
        for (LocationIndex i = 0; i < p.locations.size(); ++i)
            number[i] = number_of(std::move(p.locations[i]), modules);
        p.each_location([&](LocationIndex& i) { i = number[i]; });
        sections_.add(p.sections);
        processes_.add(p);
    }

    Profile take() {
        Profile p;
        static_cast<RunFacts&>(p) = facts_.take();
        p.modules = std::move(modules_);
        p.locations = std::move(locations_);
        p.sections = sections_.take();
        processes_.take(p);
        renumber_modules(p, sort_modules(p.modules));
        sort_locations(p);
        for (const auto& section : p.sections) section->sort();
        for (const auto& part : p.parts)
            for (const auto& section : part.sections) section->sort();
        note_dropped(p);
        sections_.each_warning([&](const std::string& warning) { note(p, warning); });
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
    SumOfSections sections_;
    SumOfProcesses processes_;
};

Merger::Merger(From from) : sum_(std::make_unique<Sum>(from)) {}
Merger::~Merger() = default;

void Merger::add(NamedProfile profile) {
    sum_->add_profile(std::move(profile));
}

Profile Merger::take() {
    return sum_->take();
}

}  // namespace shadowprof::model
