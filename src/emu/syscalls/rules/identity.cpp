#include "emu/syscalls/rules/identity.h"

namespace shadowprof::emu::rules {

bool is_sampled(const Request& request, std::size_t argument) {
    const auto id = request.int_argument(argument);
    return id == 0 || id == request.facts.tid || id == request.facts.pid;
}

MaybeAnswer tell_id(const std::optional<pid_t>& id) {
    if (!id) return {};
    return Answer{*id};
}

MaybeAnswer tell_own_id(const Request& request, const std::optional<pid_t>& id) {
    if (!is_sampled(request, 0)) return {};
    return tell_id(id);
}

MaybeAnswer tell_credential(const Request& request, uid_t Credentials::*which) {
    if (!request.facts.credentials) return {};
    return Answer{(*request.facts.credentials).*which};
}

MaybeAnswer tell_three(Request& request, uid_t Credentials::*real, uid_t Credentials::*effective,
                       uid_t Credentials::*saved) {
    if (!request.facts.credentials) return {};
    const auto& known = *request.facts.credentials;
    const bool written = request.memory.write_as(request.address(0), known.*real) &&
                         request.memory.write_as(request.address(1), known.*effective) &&
                         request.memory.write_as(request.address(2), known.*saved);
    return written ? Answer{0} : fails(EFAULT);
}

ReplicaAction ask_for_id(const Request& request, const std::optional<pid_t>& own) {
    if (is_sampled(request, 0)) return or_end(tell_id(own), request);
    return Execute{};
}

}  // namespace shadowprof::emu::rules
