// What a call that was kept was called with, as people read it.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

struct Argument {
    std::string name;
    // Text: pointers, enumerators, characters, and numbers that not every reader of JSON can hold.
    std::variant<std::int64_t, bool, std::string> value;
};

// `values`: of the parameters of the function that begins there, as the profile has them.
std::vector<Argument> arguments_of(const Location& function,
                                   const std::vector<std::uint64_t>& values);
// n=42, p=0x7f00, …
std::string argument_text(const std::vector<Argument>& arguments);

}  // namespace shadowprof::report
