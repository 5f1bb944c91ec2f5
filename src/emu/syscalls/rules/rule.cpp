#include "emu/syscalls/rules/rule.h"

namespace shadowprof::emu::rules {

ReplicaAction or_end(const MaybeAnswer& answer, const Request& request) {
    if (answer) return *answer;
    if (request.why_no_answer != nullptr) return request.end_because(request.why_no_answer);
    return request.end();
}

ReplicaAction execute_with(const Request& request, const std::array<std::uint64_t, 6>& arguments) {
    if (request.call.arguments == arguments) return Execute{};
    return ExecuteInstead{{request.call.number, arguments}};
}

}  // namespace shadowprof::emu::rules
