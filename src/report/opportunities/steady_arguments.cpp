// Arguments that nearly always have the same value. A version of the function for that value, or a
// test for it at the entry, lets the compiler fold the code that depends on it.
//
// No instruction shows an argument at the function's entry. Its values are taken from the
// instructions with which callers wrote it. A register that the function does not read is not an
// argument.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "profile/value/value_words.h"
#include "report/opportunities/finders.h"
#include "report/opportunities/last_writers.h"
#include "report/opportunities/reads_argument.h"
#include "report/text/format.h"

namespace shadowprof::report {

namespace {

// In the order of the calling convention: integers and pointers, then floating-point numbers.
constexpr std::array<RegisterFamily, 10> argument_registers{
    RegisterFamily::rdi, RegisterFamily::rsi, RegisterFamily::rdx, RegisterFamily::rcx,
    RegisterFamily::r8,  RegisterFamily::r9,  vector_family(0),    vector_family(1),
    vector_family(2),    vector_family(3)};
constexpr std::size_t integer_arguments = 6;
constexpr std::size_t callers_listed = 3;

std::string argument_name(std::size_t i) {
    constexpr std::array<const char*, 6> ordinals{"first",  "second", "third",
                                                  "fourth", "fifth",  "sixth"};
    return i < integer_arguments
               ? fmt::format("its {} integer argument", ordinals[i])
               : fmt::format("its {} floating-point argument", ordinals[i - integer_arguments]);
}

// The callers that call most often.
std::vector<std::string> callers(const Evidence& e, Point entry) {
    std::vector<const EdgeEntry*> calls;
    for (const auto* edge : e.edges_to(entry))
        // A jump from another function is a tail call.
        if (edge->kind == EdgeKind::call || !e.same_function(e.point(edge->from), entry))
            calls.push_back(edge);
    std::stable_sort(calls.begin(), calls.end(), [](const auto* a, const auto* b) {
        return a->statistics.count > b->statistics.count;
    });
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < std::min(calls.size(), callers_listed); ++i)
        lines.push_back(fmt::format("called {} times from {}",
                                    count_text(calls[i]->statistics.count),
                                    full_label(e.profile(), e.profile().at(calls[i]->from))));
    if (calls.size() > callers_listed)
        lines.back() +=
            fmt::format(", and from {}", counted("more place", calls.size() - callers_listed));
    return lines;
}

}  // namespace

std::vector<Finding> find_steady_arguments(const Evidence& e, Symbols& symbols) {
    std::vector<Finding> found;
    if (!e.profile().find<MethodSection>() || !e.profile().find<ValueSection>()) return found;
    for (const auto& method : e.profile().find<MethodSection>()->entries) {
        const auto touched =
            e.share_of_instructions(static_cast<double>(method.instructions.count));
        const auto length = e.instructions_per_call(method);
        const auto entry = e.point(method.function);
        if (touched < tuning::least_touched || entry == Evidence::no_point || length <= 0 ||
            length > tuning::longest_specialised ||
            method.calls + method.tail_calls < tuning::least_executions || e.is_plt_stub(entry))
            continue;
        for (std::size_t i = 0; i < argument_registers.size(); ++i) {
            const auto family = argument_registers[i];
            if (!reads_argument(e, symbols, entry, family)) continue;
            const auto value = dominant_value(e, argument_writers(e, entry, family), family);
            if (!value || value->ratio.low < tuning::least_argument_share ||
                looks_like_an_address(*value))
                continue;
            Finding f;
            f.location = method.function;
            f.what = fmt::format("{} is {} in {} of the calls of {}", argument_name(i),
                                 value_text(value->value, *value->entry), ratio_text(value->ratio),
                                 function_label(e.profile(), e.place(entry)));
            f.evidence.push_back(fmt::format("{} of {:.0f} instructions each",
                                             counted("call", method.calls + method.tail_calls),
                                             length));
            for (auto& line : callers(e, entry)) f.evidence.push_back(std::move(line));
            f.touches = touched * value->ratio.share;
            const auto executed =
                share_of(method.instructions, e.profile().find<MethodSection>()->instructions);
            f.bounds = scaled({executed.share * value->ratio.share, executed.low * value->ratio.low,
                               executed.high * value->ratio.high},
                              f.touches);
            found.push_back(std::move(f));
        }
    }
    return found;
}

}  // namespace shadowprof::report
