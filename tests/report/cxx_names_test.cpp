#include "report/symbols/cxx_names.h"

#include <doctest/doctest.h>

namespace shadowprof::report {

TEST_CASE("parameters are those of the function, whatever brackets its name has") {
    using Names = std::vector<std::string_view>;
    CHECK(parameters_of("f(int, char const*) const") == Names{"int", "char const*"});
    CHECK(parameters_of("(anonymous namespace)::f(std::map<int, (anonymous namespace)::x>)") ==
          Names{"std::map<int, (anonymous namespace)::x>"});
    CHECK(parameters_of("a::operator()(int) const") == Names{"int"});
    CHECK(parameters_of("a::operator<(a const&)") == Names{"a const&"});
    CHECK(parameters_of("std::ostream& operator<< <int>(std::ostream&, int)") ==
          Names{"std::ostream&", "int"});
    CHECK(parameters_of("main::{lambda(int)#1}::operator()(long) const") == Names{"long"});
    CHECK(parameters_of("f(void (*)(int), long) [clone .part.0]") ==
          Names{"void (*)(int)", "long"});
    CHECK(parameters_of("main").empty());
    CHECK(parameters_of("f(").empty());
    CHECK(parameters_of("std::vector<int").empty());
}

TEST_CASE("copy constructors and destructors are told from what is like them") {
    CHECK(copied_class("std::vector<int>::vector(std::vector<int> const&)") == "std::vector<int>");
    CHECK(copied_class("a::b::b(a::b const&)") == "a::b");
    CHECK(copied_class("a::b[abi:cxx11]::b(a::b const&)").empty());
    CHECK(copied_class("std::vector<int>::vector(std::vector<int>&&)").empty());
    CHECK(copied_class("std::vector<int>::operator=(std::vector<int> const&)").empty());
    CHECK(copied_class("b(b const&)").empty());
    CHECK(copied_class("a::b::merge(a::b const&)").empty());
    CHECK(destroyed_class("std::map<int, int>::~map()") == "std::map<int, int>");
    CHECK(destroyed_class("a::operator~()").empty());
}

TEST_CASE("types are shortened to what a person would write") {
    CHECK(short_type("std::__cxx11::basic_string<char, std::char_traits<char>, "
                     "std::allocator<char> >") == "std::string");
    CHECK(short_type("std::map<int, std::vector<double, std::allocator<double> >, std::less<int>, "
                     "std::allocator<std::pair<int const, int> > >") ==
          "std::map<int, std::vector<double>>");
    CHECK(short_type("unsigned long") == "unsigned long");
    CHECK(last_part("std::map<a::b, int>::find") == "find");
    CHECK(whole_template("std::_Rb_tree<int, a<b>>::find") == "std::_Rb_tree<int, a<b>>");
}

}  // namespace shadowprof::report
