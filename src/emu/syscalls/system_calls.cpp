#include "emu/syscalls/system_calls.h"

#include <array>

#include "emu/syscalls/table.h"

namespace shadowprof::emu {

namespace {

using rules::ReplicaRule;
using rules::Request;

std::string words(const ReplicaRule& rule) {
    std::string text = rule.text;
    if (rule.proviso != nullptr) {
        text += std::string(", if ") + rule.proviso->text + "; otherwise ends";
    }
    return text;
}

}  // namespace

std::string_view to_string(SystemCallClass kind) {
    constexpr std::array<std::string_view, 5> names{"benign", "output", "input", "miscellaneous",
                                                    "unsafe"};
    return names.at(static_cast<std::size_t>(kind));
}

std::string system_call_end_reason(std::int32_t number) {
    if (const auto* row = find_system_call(number)) return "system call " + std::string(row->name);
    return "system call #" + std::to_string(number);
}

std::optional<Answer> answer_in_burst(const SystemCall& call, GuestFacts& facts,
                                      GuestMemory& memory) {
    const auto* row = find_system_call(call.number);
    if (row == nullptr) return {};
    Request request{call, row->name, facts, memory};
    return row->in_burst.answer(request);
}

ReplicaAction decide_in_replica(const SystemCall& call, GuestFacts& facts, GuestMemory& memory) {
    const auto* row = find_system_call(call.number);
    if (row == nullptr) return End{system_call_end_reason(call.number)};
    Request request{call, row->name, facts, memory};
    const auto& rule = row->in_replica;
    if (rule.proviso != nullptr && !rule.proviso->holds(request)) return request.end();
    const auto action = rule.answer != nullptr ? rules::or_end(rule.answer(request), request)
                                               : rule.decide(request);
    // A burst may guess: its thread does everything for real.
    if (request.met_unknown_file) return request.end_because("on a descriptor that is not known");
    return action;
}

std::vector<SystemCallTreatment> system_call_treatments() {
    std::vector<SystemCallTreatment> treatments;
    for (const auto& row : system_call_rows()) {
        treatments.push_back(
            {row.number, row.name, row.kind, row.in_burst.text, words(row.in_replica)});
    }
    return treatments;
}

}  // namespace shadowprof::emu
