// Names as the programmer wrote them.
#pragma once

#include <string>
#include <string_view>

namespace shadowprof::report {

// Demangles a C++ or Rust symbol or the stub for one ("puts@plt") and returns any other name
// unchanged, as well as one that would be longer than anybody reads.
// Symbol versions ("@@GLIBC_2.14") are dropped; suffixes of compilers become
// "[clone .constprop.0]".
std::string demangle(const std::string& symbol);

// "std::map<int, int>::at(int const&) const" -> "std::map::at": for lists, where the parameters
// would hide the name.
std::string without_parameters(std::string_view function);

}  // namespace shadowprof::report
