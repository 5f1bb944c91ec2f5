#include "profile/common/lock_functions.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "decoder/instruction.h"

namespace shadowprof::profile {

namespace {

using enum LockCall;

constexpr std::array<std::pair<std::string_view, LockCall>, 20> functions{{
    {"mutex_lock", takes},         {"mutex_trylock", takes},      {"mutex_timedlock", takes},
    {"mutex_clocklock", takes},    {"mutex_unlock", gives_back},  {"cond_wait", waits},
    {"cond_timedwait", waits},     {"cond_clockwait", waits},     {"rwlock_rdlock", takes},
    {"rwlock_tryrdlock", takes},   {"rwlock_timedrdlock", takes}, {"rwlock_clockrdlock", takes},
    {"rwlock_wrlock", takes},      {"rwlock_trywrlock", takes},   {"rwlock_timedwrlock", takes},
    {"rwlock_clockwrlock", takes}, {"rwlock_unlock", gives_back}, {"spin_lock", takes},
    {"spin_trylock", takes},       {"spin_unlock", gives_back},
}};

// Names by which the C library calls them itself have some '_' before these.
constexpr std::string_view prefix = "pthread_";
const std::string any_of_them = "*pthread_*";

}  // namespace

LockCall LockFunctions::call_of(const PlaceName& name) const {
    std::string_view rest = name.function;
    rest.remove_prefix(std::min(rest.find_first_not_of('_'), rest.size()));
    if (!rest.starts_with(prefix)) return none;
    rest.remove_prefix(prefix.size());
    const auto known = std::ranges::find(functions, rest, [](const auto& f) { return f.first; });
    return known == functions.end() ? none : known->second;
}

LockCall LockFunctions::called_at(const trace::Location& place) const {
    if (!names_.fits(NameOf::function, any_of_them, place)) return none;
    const auto name = names_.name_of(place);
    return name.offset == 0 ? call_of(name) : none;
}

bool LockFunctions::are_around(const trace::Location& place) const {
    return names_.fits(NameOf::function, any_of_them, place) &&
           call_of(names_.name_of(place)) != none;
}

std::uint8_t LockFunctions::argument_of(LockCall call) {
    return call == waits ? decoder::rsi : decoder::rdi;
}

}  // namespace shadowprof::profile
