// What the cells of the system-call table are made of. Private to system_calls.cpp.
//
// The types keep the promise of bursts: a burst's rule can only be an answer, so no row can make
// the profiler execute a call for a burst. A replica's rule may do more, and every answer that
// serves a burst serves a replica too.
#pragma once

#include <cerrno>
#include <string>

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

using AnswerFunction = std::optional<Answer> (*)(Request&);

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

inline std::optional<Answer> no_answer(Request&) {
    return {};
}
inline constexpr BurstRule ends{"ends", no_answer};

inline ReplicaAction execute_it(Request&) {
    return Execute{};
}
inline constexpr ReplicaRule executes{"executed", execute_it};

// An answer that depends on something unknown is no answer: the sample ends.
inline ReplicaAction or_end(const std::optional<Answer>& answer, const Request& request) {
    if (answer) return *answer;
    if (request.why_no_answer != nullptr) return request.end_because(request.why_no_answer);
    return request.end();
}

}  // namespace shadowprof::emu::rules
