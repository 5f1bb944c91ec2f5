#include "report/diff/align.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "model/utf8.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

constexpr ModuleIndex none = ~ModuleIndex{0};

// "[vdso]" and "[runtime code]" are made by the kernel or the program; they are not files.
bool is_file(const Module& m) {
    return !m.path.starts_with('[');
}

std::string build_text(const Module& m) {
    return m.build_id.empty() ? "no build id" : "build " + printable(m.build_id.substr(0, 12));
}

class Aligner {
  public:
    Aligner(NamedProfile& a, NamedProfile& b) : a_(a), b_(b) {}

    std::vector<std::string> align() {
        match_modules();
        number_modules();
        number_locations();
        return std::move(notes_);
    }

  private:
    const std::vector<Module>& modules_of_a() const { return a_.profile.modules; }
    const std::vector<Module>& modules_of_b() const { return b_.profile.modules; }

    void match(ModuleIndex in_a, ModuleIndex in_b) {
        of_a_[in_a] = in_b;
        of_b_[in_b] = in_a;
    }

    void match_modules() {
        of_a_.assign(modules_of_a().size(), none);
        of_b_.assign(modules_of_b().size(), none);
        match_equal([](const Module& m) { return std::pair(m.build_id, m.path); });
        match_equal([](const Module& m) { return std::pair(m.build_id, std::string()); });
        match_by_path();
        refuse_different_programs();
        for (ModuleIndex i = 0; i < modules_of_a().size(); ++i)
            if (of_a_[i] != none && is_file(modules_of_a()[i])) return;
        refuse("they have no code in common");
    }

    // By a key that begins with the build id; modules without one are left.
    template <class Key>
    void match_equal(Key key) {
        std::map<decltype(key(modules_of_b()[0])), ModuleIndex> in_b;
        for (ModuleIndex i = 0; i < modules_of_b().size(); ++i)
            if (of_b_[i] == none && !modules_of_b()[i].build_id.empty())
                in_b.emplace(key(modules_of_b()[i]), i);
        for (ModuleIndex i = 0; i < modules_of_a().size(); ++i) {
            if (of_a_[i] != none) continue;
            const auto found = in_b.find(key(modules_of_a()[i]));
            if (found == in_b.end()) continue;
            match(i, found->second);
            in_b.erase(found);
        }
    }

    void match_by_path() {
        std::map<std::string, ModuleIndex> paths, names;
        for (ModuleIndex i = 0; i < modules_of_b().size(); ++i) {
            if (of_b_[i] != none) continue;
            paths.emplace(modules_of_b()[i].path, i);
            names.emplace(file_name(modules_of_b()[i].path), i);
        }
        for (ModuleIndex i = 0; i < modules_of_a().size(); ++i) {
            if (of_a_[i] != none) continue;
            const auto& module = modules_of_a()[i];
            if (const auto found = paths.find(module.path); found != paths.end())
                match_same_path(i, found->second);
            else if (const auto like = names.find(file_name(module.path)); like != names.end())
                note_different(module, modules_of_b()[like->second]);
        }
    }

    void match_same_path(ModuleIndex in_a, ModuleIndex in_b) {
        const auto& module = modules_of_a()[in_a];
        const auto& other = modules_of_b()[in_b];
        const bool both_known = !module.build_id.empty() && !other.build_id.empty();
        if (both_known && is_file(module)) refuse_builds(module, other);
        if (both_known) return note_different(module, other);  // the vdso of another kernel
        if (of_b_[in_b] != none) return;
        match(in_a, in_b);
        if (is_file(module))
            notes_.push_back(
                fmt::format("{} has no build id{}: nobody can tell whether it is the "
                            "same file in both profiles",
                            printable(module.path),
                            module.build_id == other.build_id ? ""
                            : module.build_id.empty()         ? " in " + a_.name
                                                              : " in " + b_.name));
        else
            notes_.push_back(fmt::format(
                "{} is compared by address and content: where a run put it elsewhere, it is "
                "missed",
                printable(module.path)));
    }

    // The same program has the same module, unless one of the profiles never saw it.
    void refuse_different_programs() const {
        const auto* in_a = unmatched_program(a_.profile, of_a_);
        const auto* in_b = unmatched_program(b_.profile, of_b_);
        if (!in_a || !in_b) return;
        if (file_name(in_a->path) == file_name(in_b->path)) refuse_builds(*in_a, *in_b);
        refuse(fmt::format("{} and {} are different programs", printable(in_a->path),
                           printable(in_b->path)));
    }
    static const Module* unmatched_program(const Profile& p,
                                           const std::vector<ModuleIndex>& counterparts) {
        for (const auto& target : p.targets)
            for (ModuleIndex i = 0; i < p.modules.size(); ++i)
                if (counterparts[i] == none && !target.command.empty() &&
                    file_name(p.modules[i].path) == file_name(target.command[0]))
                    return &p.modules[i];
        return nullptr;
    }

    [[noreturn]] void refuse_builds(const Module& of_a, const Module& of_b) const {
        refuse(fmt::format("different builds of {}: {} ({}) and {} ({})", file_name(of_a.path),
                           printable(of_a.path), build_text(of_a), printable(of_b.path),
                           build_text(of_b)));
    }
    [[noreturn]] void refuse(const std::string& why) const {
        throw UserError(fmt::format("cannot compare {} with {}: {}", a_.name, b_.name, why),
                        ExitStatus::incomparable);
    }
    void note_different(const Module& of_a, const Module& of_b) {
        notes_.push_back(fmt::format(
            "{} in {} ({}) and {} in {} ({}) are different files: their code is not compared",
            printable(of_a.path), a_.name, build_text(of_a), printable(of_b.path), b_.name,
            build_text(of_b)));
    }

    // One table of all modules, by path and build id, as in any profile.
    void number_modules() {
        struct Row {
            const Module* module;
            ModuleIndex in_a, in_b;
        };
        std::vector<Row> rows;
        for (ModuleIndex i = 0; i < modules_of_b().size(); ++i)
            rows.push_back({&modules_of_b()[i], of_b_[i], i});
        for (ModuleIndex i = 0; i < modules_of_a().size(); ++i)
            if (of_a_[i] == none) rows.push_back({&modules_of_a()[i], i, none});
        std::stable_sort(rows.begin(), rows.end(), [](const Row& x, const Row& y) {
            return std::tie(x.module->path, x.module->build_id) <
                   std::tie(y.module->path, y.module->build_id);
        });
        std::vector<Module> modules;
        for (const auto& row : rows) {
            const auto number = static_cast<ModuleIndex>(modules.size());
            if (row.in_a != none) of_a_[row.in_a] = number;
            if (row.in_b != none) of_b_[row.in_b] = number;
            modules.push_back(*row.module);
        }
        for (auto& l : a_.profile.locations) l.module = of_a_[l.module];
        for (auto& l : b_.profile.locations) l.module = of_b_[l.module];
        a_.profile.modules = modules;
        b_.profile.modules = std::move(modules);
    }

    // One table of all places, those of both only once.
    void number_locations() {
        std::vector<Location> all = std::move(b_.profile.locations);
        const auto of_b = all.size();
        std::move(a_.profile.locations.begin(), a_.profile.locations.end(),
                  std::back_inserter(all));
        const auto place = [&](LocationIndex i) {
            const auto& l = all[i];
            return std::tuple(l.module, l.offset, l.content, l.return_address);
        };
        std::vector<LocationIndex> order(all.size());
        std::iota(order.begin(), order.end(), 0u);
        std::stable_sort(order.begin(), order.end(),
                         [&](auto x, auto y) { return place(x) < place(y); });
        std::vector<LocationIndex> number(all.size());
        std::vector<Location> table;
        std::optional<decltype(place(0))> last;
        for (const auto i : order) {
            if (const auto here = place(i); last != here) {
                table.push_back(std::move(all[i]));
                last = here;
            }
            number[i] = static_cast<LocationIndex>(table.size() - 1);
        }
        b_.profile.each_location([&](LocationIndex& i) { i = number[i]; });
        a_.profile.each_location([&](LocationIndex& i) { i = number[of_b + i]; });
        a_.profile.locations = table;
        b_.profile.locations = std::move(table);
    }

    NamedProfile& a_;
    NamedProfile& b_;
    std::vector<ModuleIndex> of_a_, of_b_;  // its counterpart; then its number in both
    std::vector<std::string> notes_;
};

}  // namespace

std::vector<std::string> align(NamedProfile& a, NamedProfile& b) {
    return Aligner(a, b).align();
}

}  // namespace shadowprof::report
