// Lookups in std::map, std::set and their like, where nothing walks the tree in order: each goes
// from node to node, one load waiting for the other and one comparison that nobody can predict for
// the next. A hash table or a sorted array needs no such chain.
//
// A descent is known by the functions of the tree, called or inlined. Order counts as used where
// an iterator of such a tree was moved, or its first or last element asked for.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "report/opportunities/finders.h"
#include "report/symbols/cxx_names.h"
#include "report/text/format.h"
#include "report/views/stack_time.h"
#include "report/views/users_place.h"

namespace shadowprof::report {

namespace {

using std::string_view;

bool is_in_namespace_std(string_view name, string_view part) {
    return name.starts_with("std::") && name.find(part) != name.npos;
}

// "std::_Rb_tree<…>::find(int const&)" -> "std::_Rb_tree<…>"; also libc++'s. A function's return
// type stands before it.
string_view tree_of(string_view function) {
    const auto name = name_with_class(function);
    for (const string_view tree : {"std::_Rb_tree<", "std::__1::__tree<"}) {
        for (auto at = name.find(tree); at != name.npos; at = name.find(tree, at + 1)) {
            const auto whole = whole_template(name.substr(at));
            if (name.substr(at + whole.size()).starts_with("::")) return whole;
        }
    }
    return {};
}

bool is_descent(string_view function) {
    constexpr std::array<string_view, 14> descents{"find",           "count",
                                                   "lower_bound",    "upper_bound",
                                                   "equal_range",    "contains",
                                                   "_M_lower_bound", "_M_upper_bound",
                                                   "__lower_bound",  "_M_find_tr",
                                                   "__find_equal",   "__count_unique",
                                                   "_M_count_tr",    "_M_get_insert_unique_pos"};
    const auto method = last_part(name_with_class(function));
    return std::ranges::find(descents, method.substr(0, method.find_first_of("<["))) !=
           descents.end();
}

// The tree in which it goes from node to node; empty if it does not.
string_view descent_at(const Location& l) {
    for (const auto& frame : frames_of(l)) {
        const auto tree = tree_of(frame.function);
        if (!tree.empty() && is_descent(frame.function)) return tree;
    }
    return {};
}

// What the elements of a tree are, without blanks: names differ in those.
std::string elements_of(string_view type) {
    const auto arguments = template_arguments(type);
    const bool is_map_of_pairs = type.find("_Rb_tree<") != type.npos;
    const std::size_t which = is_map_of_pairs ? 1 : 0;
    if (arguments.size() <= which) return {};
    std::string elements(arguments[which]);
    std::erase(elements, ' ');
    return elements;
}

class Order {
  public:
    explicit Order(const Evidence& e) {
        for (Point at = 0; at < e.points(); ++at) {
            if (e.executions(at) == 0) continue;
            look(frames_of(e.place(at)));
            for (const auto* edge : e.edges_from(at))
                if (edge->kind == EdgeKind::call) look_at_call(e, e.place(at), *edge);
        }
    }
    bool is_used(string_view tree) const {
        return is_anything_used_ || used_.contains(elements_of(tree));
    }

  private:
    // Inserting and erasing move iterators, too.
    static bool is_own_business(string_view function) {
        const auto name = name_with_class(function);
        const auto method = last_part(name);
        return !tree_of(name).empty() &&
               (method.starts_with("_M_insert") || method.starts_with("_M_get_insert") ||
                method.starts_with("_M_emplace") || method.starts_with("_M_erase") ||
                method.starts_with("erase") || method.starts_with("__insert") ||
                method.starts_with("__emplace") || method.starts_with("__erase"));
    }
    static bool is_of_a_container(string_view function) {
        for (const string_view container : {"map<", "set<"})
            if (is_in_namespace_std(function, container)) return true;
        return false;
    }

    void look(const std::vector<CodeFrame>& frames) {
        for (std::size_t i = 0; i < frames.size(); ++i) {
            if (is_own_business(frames[i].function)) return;
            const auto name = name_with_class(frames[i].function);
            const auto method = last_part(name);
            const auto iterator = name.find("tree_iterator<");
            const auto const_iterator = name.find("tree_const_iterator<");
            const auto begin = std::min(iterator, const_iterator);
            if (begin != name.npos && (method == "operator++" || method == "operator--")) {
                const bool is_internal =
                    std::any_of(frames.begin() + static_cast<std::ptrdiff_t>(i), frames.end(),
                                [](const auto& f) { return is_own_business(f.function); });
                const auto arguments = template_arguments(name.substr(begin));
                if (is_internal || arguments.empty()) return;
                std::string elements(arguments.front());
                std::erase(elements, ' ');
                used_.insert(std::move(elements));
                return;
            }
            // Asked by whoever uses the container, and not by the tree itself.
            const auto tree = tree_of(name);
            if (!tree.empty() && (method == "begin" || method == "rbegin") &&
                i + 1 < frames.size() && is_of_a_container(frames[i + 1].function))
                used_.insert(elements_of(tree));
        }
    }

    // Where nothing tells what was inlined.
    void look_at_call(const Evidence& e, const Location& from, const EdgeEntry& call) {
        const auto callee = without_stub(e.profile().at(call.to).function);
        if (!callee.starts_with("std::_Rb_tree_increment(") &&
            !callee.starts_with("std::_Rb_tree_decrement("))
            return;
        if (from.inlined.empty() && !is_own_business(from.function)) is_anything_used_ = true;
    }

    std::set<std::string> used_;
    bool is_anything_used_ = false;
};

struct Descents {
    double instructions = 0;
    Point busiest = Evidence::no_point;
    std::uint64_t busiest_ran = 0;
    std::uint64_t steps = 0;
    std::vector<LocationIndex> links;  // the loads of links
};

// "std::map<…>::lower_bound" and its like, called by the user's code.
bool asks_for_neighbours(const Location& l) {
    const auto frames = frames_of(l);
    for (std::size_t i = 1; i < frames.size(); ++i) {
        if (is_library_header(frames[i].file)) continue;
        const auto method = last_part(name_with_class(frames[i - 1].function));
        return method == "lower_bound" || method == "upper_bound" || method == "equal_range";
    }
    return false;
}

using Function = std::tuple<ModuleIndex, std::uint64_t, std::uint64_t>;
Function function_of(const Location& l) {
    return {l.module, l.content, l.function_offset.value_or(l.offset)};
}

class LookupFinder {
  public:
    explicit LookupFinder(const Evidence& e) : e_(e), time_(e.profile()), order_(e) {}

    std::vector<Finding> find() {
        find_descents();
        std::vector<Finding> found;
        for (const auto& [key, descents] : all_) {
            if (descents.busiest_ran < tuning::least_executions || order_.is_used(key.second))
                continue;
            if (auto f = finding_of(key, descents); f.touches >= tuning::least_lookup_share)
                found.push_back(std::move(f));
        }
        return found;
    }

  private:
    using Key = std::pair<Function, std::string>;  // and the tree

    const Profile& p() const { return e_.profile(); }

    void find_descents() {
        const auto* const paths = p().find<PathSection>();
        if (!paths) return;
        for (const auto& path : paths->entries)
            for (const auto& block : path.blocks) {
                const auto& at = p().at(block.start);
                const auto work = real(block.instructions) * real(path.statistics.count);
                of_function_[function_of(at)] += work;
                const auto tree = descent_at(at);
                if (tree.empty()) continue;
                auto& descents = all_[{function_of(at), std::string(tree)}];
                descents.instructions += work;
            }
        for (Point at = 0; at < e_.points(); ++at) {
            if (e_.executions(at) == 0) continue;
            const auto tree = descent_at(e_.place(at));
            if (tree.empty()) continue;
            const auto found = all_.find({function_of(e_.place(at)), std::string(tree)});
            if (found == all_.end()) continue;
            auto& descents = found->second;
            if (is_step(at)) {
                descents.steps += e_.executions(at);
                descents.links.push_back(e_.location(at));
            }
            if (e_.executions(at) <= descents.busiest_ran) continue;
            descents.busiest = at;
            descents.busiest_ran = e_.executions(at);
        }
    }

    // Loads the link to a child: in libstdc++ they follow the colour and the parent.
    bool is_step(Point at) const {
        const auto i = e_.text(at);
        return is_pure_load(i) && i.operands.size() == 2 &&
               (i.operands[1].ends_with("+0x10]") || i.operands[1].ends_with("+0x18]")) &&
               registers_in(i.operands[1]).size() == 1;
    }

    // What the function calls from there, too: comparisons of strings.
    Share time_of(const Key& key, const Descents& descents) const {
        const auto in = of_function_.at(key.first);
        const auto part = in > 0 ? descents.instructions / in : 0;
        const auto own = time_.share([&](const TimeSection::Entry& e) {
            return function_of(p().at(e.frames.front())) == key.first;
        });
        const auto called = time_.share([&](const TimeSection::Entry& e) {
            return std::any_of(e.frames.begin() + 1, e.frames.end(), [&](auto frame) {
                const auto& l = p().at(frame);
                return function_of(l) == key.first && descent_at(l) == key.second;
            });
        });
        return {own.share * part + called.share, own.low * part + called.low,
                std::min(1.0, own.high * part + called.high)};
    }

    // From where the user's code asks: the function may be the library's own.
    Point asked_from(Point at) const {
        constexpr int most_levels = 6;
        for (int level = 0; level < most_levels; ++level) {
            if (users_frame(e_.place(at))) return at;
            const auto entry = e_.entry_of(at);
            if (entry == Evidence::no_point) return at;
            const EdgeEntry* busiest = nullptr;
            for (const auto* edge : e_.edges_to(entry))
                if (edge->kind == EdgeKind::call &&
                    (!busiest || edge->statistics.count > busiest->statistics.count))
                    busiest = edge;
            if (!busiest) return at;
            at = e_.point(busiest->from);
        }
        return at;
    }

    Finding finding_of(const Key& key, const Descents& descents) const {
        const auto at = asked_from(descents.busiest);
        Finding f;
        f.location = e_.location(at);
        f.where = users_label(p(), e_.place(at));
        f.explains = descents.links;
        const auto elements = elements_text(key.second);
        f.what = fmt::format(
            "looks up in an ordered tree of {}, {} from node to node; nothing was seen to walk it "
            "in order",
            elements, counted("step", descents.steps ? descents.steps : descents.busiest_ran));
        if (at != descents.busiest)
            f.evidence.push_back("by " + function_label(p(), e_.place(descents.busiest)));
        else if (asks_for_neighbours(e_.place(at)))
            f.evidence.emplace_back("it asks for the nearest key, which a hash table cannot tell");
        if (time_.is_known()) {
            f.bounds = time_of(key, descents);
            f.touches = f.bounds->share;
            f.is_by_clock = true;
        } else {
            f.touches = e_.share_of_instructions(descents.instructions);
        }
        return f;
    }

    static std::string elements_text(string_view tree) {
        const auto arguments = template_arguments(tree);
        const std::size_t which = tree.find("_Rb_tree<") != tree.npos ? 1 : 0;
        return arguments.size() > which ? short_type(arguments[which]) : std::string(tree);
    }

    const Evidence& e_;
    StackTime time_;
    Order order_;
    std::map<Key, Descents> all_;
    std::map<Function, double> of_function_;  // instructions
};

}  // namespace

std::vector<Finding> find_ordered_lookups(const Evidence& e, Symbols&) {
    return LookupFinder(e).find();
}

}  // namespace shadowprof::report
