// Copies of objects that are destroyed where they were made: arguments that are passed by value,
// elements that a loop copies, temporary objects.
//
// Copying is told by the copy constructor, called or inlined, and by the destructor of the same
// class in the same line. What it costs is what is called from there: memory is allocated, filled
// and freed. Copying a few words in place calls nothing, and is no finding.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>

#include "report/opportunities/finders.h"
#include "report/opportunities/last_writers.h"
#include "report/symbols/cxx_names.h"
#include "report/text/format.h"
#include "report/views/stack_time.h"
#include "report/views/users_place.h"

namespace shadowprof::report {

namespace {

// A statement may be written in several lines.
constexpr std::uint32_t lines_of_a_statement = 6;

// What a call is part of.
struct Part {
    std::string_view of;  // the class
    bool is_making = false;
    std::string_view file;  // of the user's code
    std::uint32_t line = 0;
};

// From the outside inwards: the first constructor or destructor that the user's own code calls.
std::optional<Part> part_of(const Location& at, std::string_view callee) {
    auto frames = frames_of(at);
    frames.insert(frames.begin(), {callee, {}, 0});
    for (auto inner = frames.size() - 1; inner-- > 0;) {
        const auto& caller = frames[inner + 1];
        if (is_library_header(caller.file)) return {};
        if (const auto of = copied_class(frames[inner].function); !of.empty())
            return Part{of, true, caller.file, caller.line};
        if (const auto of = destroyed_class(frames[inner].function); !of.empty())
            return Part{of, false, caller.file, caller.line};
    }
    return {};
}

using Function = std::tuple<ModuleIndex, std::uint64_t, std::uint64_t>;
Function function_of(const Location& l) {
    return {l.module, l.content, l.function_offset.value_or(l.offset)};
}

struct Copies {
    Point busiest = Evidence::no_point;  // of the calls that make them
    std::string file;
    std::uint64_t made = 0, destroyed = 0;
    const EdgeEntry* taken = nullptr;  // the call whose callee takes the copy by value
    Statistics making, destroying;     // time
};

// By function, class and line.
using Key = std::tuple<Function, std::string, std::uint32_t>;
using AllCopies = std::map<Key, Copies>;

bool takes_by_value(std::string_view function, std::string_view type) {
    return std::ranges::any_of(parameters_of(function),
                               [&](auto parameter) { return parameter == type; });
}

class CopyFinder {
  public:
    explicit CopyFinder(const Evidence& e) : e_(e), time_(e.profile()) {}

    std::vector<Finding> find() {
        find_calls();
        find_takers();
        find_destruction();
        if (time_.is_known()) add_time();
        std::vector<Finding> found;
        for (const auto& [key, copies] : all_) {
            if (copies.made < tuning::least_executions || copies.destroyed * 2 < copies.made)
                continue;
            found.push_back(finding_of(key, copies));
        }
        return found;
    }

  private:
    const Profile& p() const { return e_.profile(); }

    void find_calls() {
        for (Point at = 0; at < e_.points(); ++at)
            for (const auto* edge : e_.edges_from(at)) {
                if (edge->kind != EdgeKind::call) continue;
                const auto& from = e_.place(at);
                const auto& to = p().at(edge->to);
                const auto part = part_of(from, without_stub(to.function));
                if (!part) {
                    calls_[function_of(from)].push_back(edge);
                    continue;
                }
                if (!part->is_making) {
                    destructions_.push_back({function_of(from), *part, edge->statistics.count});
                    continue;
                }
                auto& copies = all_[{function_of(from), std::string(part->of), part->line}];
                if (edge->statistics.count <= copies.made) continue;
                copies.made = edge->statistics.count;
                copies.file = part->file;
                copies.busiest = at;
            }
    }

    // The call nearest to the line, of the same function, that has such a parameter.
    void find_takers() {
        for (auto& [key, copies] : all_) {
            const auto& [function, type, line] = key;
            auto nearest = lines_of_a_statement + 1;
            for (const auto* edge : calls_[function]) {
                if (!takes_by_value(without_stub(p().at(edge->to).function), type)) continue;
                const auto frame = users_frame(p().at(edge->from));
                const auto away = distance(frame ? frame->line : 0, line);
                if (away >= nearest) continue;
                nearest = away;
                copies.taken = edge;
            }
        }
    }

    void find_destruction() {
        for (const auto& d : destructions_)
            if (auto* copies = made_near(d.function, d.part))
                copies->destroyed = std::max(copies->destroyed, d.count);
    }

    // What is destroyed farther away may live on, unless a call has taken it.
    Copies* made_near(const Function& function, const Part& destroyed) {
        Copies* found = nullptr;
        auto nearest = lines_of_a_statement + 1;
        for (auto& [key, copies] : all_) {
            const auto& [in, type, line] = key;
            const auto away = distance(line, destroyed.line);
            if (in != function || type != destroyed.of || away >= nearest ||
                (away > 0 && !copies.taken))
                continue;
            nearest = away;
            found = &copies;
        }
        return found;
    }

    static std::uint32_t distance(std::uint32_t a, std::uint32_t b) {
        return std::max(a, b) - std::min(a, b);
    }

    void add_time() {
        time_.each([&](const TimeSection::Entry& stack) {
            for (auto i = stack.frames.size() - 1; i > 0; --i) {
                const auto& at = p().at(stack.frames[i]);
                const auto part = part_of(at, without_stub(p().at(stack.frames[i - 1]).function));
                if (!part) continue;
                const auto function = function_of(at);
                if (part->is_making) {
                    const auto copies = all_.find({function, std::string(part->of), part->line});
                    if (copies == all_.end()) continue;
                    copies->second.making.merge(stack.statistics);
                } else if (auto* copies = made_near(function, *part)) {
                    copies->destroying.merge(stack.statistics);
                } else {
                    continue;
                }
                return;
            }
        });
    }

    // Of a line that allocates one piece of memory for a copy.
    std::optional<DominantValue> size_of(const Key& key) const {
        std::optional<DominantValue> size;
        for (Point at = 0; at < e_.points(); ++at)
            for (const auto* edge : e_.edges_from(at)) {
                const auto callee = without_stub(p().at(edge->to).function);
                if (edge->kind != EdgeKind::call || !callee.starts_with("operator new")) continue;
                const auto part = part_of(e_.place(at), callee);
                if (!part || !part->is_making ||
                    Key{function_of(e_.place(at)), std::string(part->of), part->line} != key)
                    continue;
                if (size) return {};
                size = dominant_value(e_, last_writers(e_, at, RegisterFamily::rdi),
                                      RegisterFamily::rdi);
                if (!size) return {};
            }
        return size;
    }

    Finding finding_of(const Key& key, const Copies& copies) const {
        const auto& [function, type, line] = key;
        Finding f;
        f.location = e_.location(copies.busiest);
        f.where = label_in(p(), e_.place(copies.busiest), copies.file, line);
        const auto name = short_type(type);
        f.what = copies.taken
                     ? fmt::format("copies a {} for each call of {}, which takes it by value; {}",
                                   name, function_label(p(), p().at(copies.taken->to)),
                                   counted("time", copies.taken->statistics.count))
                     : fmt::format("copies a {}, and destroys the copy in the same line; {}", name,
                                   counted("time", copies.made));
        if (const auto size = size_of(key);
            size && size->ratio.low >= tuning::least_value_share && size->value > 0)
            f.evidence.push_back(
                fmt::format("{} bytes in {} of the copies", size->value, ratio_text(size->ratio)));
        if (time_.is_known()) {
            auto all = copies.making;
            all.merge(copies.destroying);
            f.bounds = time_.share_of_sum(all);
            f.touches = f.bounds->share;
            f.is_by_clock = true;
            f.evidence.push_back(fmt::format("of the time: {} to make the copy, {} to destroy it",
                                             ratio_text(time_.share_of_sum(copies.making)),
                                             ratio_text(time_.share_of_sum(copies.destroying))));
        } else {
            f.touches = instructions_of(key);
        }
        return f;
    }

    // Without a clock: what the functions execute that are called from there.
    double instructions_of(const Key& key) const {
        const auto* const list = p().find<CallerSection>();
        if (!list) return 0;
        double sum = 0;
        for (const auto* edge : all_calls(key)) {
            const auto callee = target_of(*edge);
            for (const auto& e : list->entries)
                if (!e.caller && e.calls > 0 && e_.point(e.function) == callee)
                    sum += real(e.inclusive.count) / real(e.calls) * real(edge->statistics.count);
        }
        return e_.share_of_instructions(sum);
    }

    std::vector<const EdgeEntry*> all_calls(const Key& key) const {
        const auto& [function, type, line] = key;
        std::vector<const EdgeEntry*> calls;
        for (Point at = 0; at < e_.points(); ++at)
            for (const auto* edge : e_.edges_from(at)) {
                if (edge->kind != EdgeKind::call || function_of(e_.place(at)) != function) continue;
                const auto part = part_of(e_.place(at), without_stub(p().at(edge->to).function));
                if (part && part->of == type && distance(part->line, line) <= lines_of_a_statement)
                    calls.push_back(edge);
            }
        return calls;
    }

    // Through the stub, if it is one.
    Point target_of(const EdgeEntry& call) const {
        const auto to = e_.point(call.to);
        if (to == Evidence::no_point || !e_.is_plt_stub(to)) return to;
        const auto out = e_.edges_from(to);
        return out.size() == 1 ? e_.point(out.front()->to) : to;
    }

    struct Destruction {
        Function function;
        Part part;
        std::uint64_t count;
    };

    const Evidence& e_;
    StackTime time_;
    AllCopies all_;
    std::map<Function, std::vector<const EdgeEntry*>> calls_;  // that are part of no copy
    std::vector<Destruction> destructions_;
};

}  // namespace

std::vector<Finding> find_temporary_copies(const Evidence& e, Symbols&) {
    return CopyFinder(e).find();
}

}  // namespace shadowprof::report
