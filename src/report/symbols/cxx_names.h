// What demangled names of C++ say: which type a constructor copies, which parameters a function
// has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shadowprof::report {

// "f(std::vector<int>, char const*) const" -> {"std::vector<int>", "char const*"}.
std::vector<std::string_view> parameters_of(std::string_view function);
// The function with its class, without parameters and what follows them.
std::string_view name_with_class(std::string_view function);
// "std::map<int, int>::find" -> "find".
std::string_view last_part(std::string_view name);

// Of a copy constructor the class, else nothing; the same of a destructor.
std::string_view copied_class(std::string_view function);
std::string_view destroyed_class(std::string_view function);

// The arguments of the first template in a name: "std::pair<int, char>" -> {"int", "char"}.
std::vector<std::string_view> template_arguments(std::string_view type);
// From its beginning to the end of the first template's arguments.
std::string_view whole_template(std::string_view type);

// Without default arguments, and std::string by that name.
std::string short_type(std::string_view type);
// "operator new(unsigned long)@plt" -> "operator new(unsigned long)".
std::string_view without_stub(std::string_view function);

}  // namespace shadowprof::report
