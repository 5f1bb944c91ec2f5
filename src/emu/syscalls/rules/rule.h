// What the cells of the system-call table are made of.
//
// The types keep the promise of bursts: a burst's rule can only be an answer, so no row can make
// the profiler execute a call for a burst. A replica's rule may do more, and every answer that
// serves a burst serves a replica too.
//
// Each header of this folder has one topic. It declares the functions that its .cpp file implements
// and gives each the words by which docs/system-calls.md describes it.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "emu/syscalls/system_calls.h"

namespace shadowprof::emu::rules {

struct Request {
    const SystemCall& call;
    std::string_view name;
    GuestFacts& facts;
    GuestMemory& memory;
    bool met_unknown_file = false;  // the answer is a guess
    const char* why_no_answer = nullptr;

    std::uint64_t argument(std::size_t n) const { return call.arguments[n]; }
    // The kernel takes most small arguments as int.
    int int_argument(std::size_t n) const { return static_cast<int>(call.arguments[n]); }
    bool is_one_of(std::size_t n, std::initializer_list<int> values) const {
        return std::ranges::find(values, int_argument(n)) != values.end();
    }
    Address address(std::size_t n) const { return {call.arguments[n]}; }
    bool is_null(std::size_t n) const { return call.arguments[n] == 0; }

    OpenFile& file(std::size_t n = 0) {
        auto& found = facts.descriptors.at(int_argument(n));
        if (found.kind == OpenFile::Kind::unknown) met_unknown_file = true;
        return found;
    }

    End end() const { return {"system call " + std::string(name)}; }
    End end_because(const char* why) const {
        return {"system call " + std::string(name) + " " + why};
    }
};

// Nothing: the answer is not known.
using MaybeAnswer = std::optional<Answer>;
using AnswerFunction = MaybeAnswer (*)(Request&);

struct BurstRule {
    const char* text;
    AnswerFunction answer;
};

struct Proviso {
    const char* text;
    bool (*holds)(Request&);
};

struct ReplicaRule {
    using Function = ReplicaAction (*)(Request&);

    const char* text;
    Function decide = nullptr;
    AnswerFunction answer = nullptr;  // in place of `decide`
    const Proviso* proviso = nullptr;

    constexpr ReplicaRule(const char* words, Function function) : text(words), decide(function) {}
    constexpr ReplicaRule(const BurstRule& rule) : text(rule.text), answer(rule.answer) {}

    constexpr ReplicaRule when(const Proviso& p) const {
        auto rule = *this;
        rule.proviso = &p;
        return rule;
    }
};

inline MaybeAnswer fails(int error) {
    return Answer{-error};
}
// An answer that depends on something unknown is no answer: the sample ends.
ReplicaAction or_end(const MaybeAnswer& answer, const Request& request);
// The program's call with these arguments.
ReplicaAction execute_with(const Request& request, const std::array<std::uint64_t, 6>& arguments);

// --- Rules that concern no topic in particular ---

inline constexpr BurstRule ends{"ends", [](Request&) { return MaybeAnswer{}; }};
inline constexpr ReplicaRule executes{"executed",
                                      [](Request&) -> ReplicaAction { return Execute{}; }};
inline constexpr BurstRule succeeds{"answered: success",
                                    [](Request&) { return MaybeAnswer{Answer{0}}; }};
inline constexpr BurstRule is_not_implemented{"answered: ENOSYS, as every x86-64 kernel does",
                                              [](Request&) { return fails(ENOSYS); }};
// The call takes a pointer for the old value, which is not known.
template <std::size_t old_value>
inline constexpr BurstRule succeeds_unless_asked{
    "answered: success, if the old value is not asked for; otherwise ends",
    [](Request& request) { return request.is_null(old_value) ? Answer{0} : MaybeAnswer{}; }};

}  // namespace shadowprof::emu::rules
