// Names for code that survive a rebuild. Two profiles of a program are matched by them when it was
// changed and compiled in between.
//
// Addresses move with every build, and lines with every edit above them. So names are made of
// these:
//   - a function is its name, and the library it is in unless that is the program itself;
//   - a place is its line in the function, counted from the function's first; or, in a file that is
//     the same build in all profiles, the offset in the function, which is finer;
//   - a path is the functions and lines it runs through.
// Places that share a name are reported as one.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "profile/diffed.h"
#include "report/model/profile.h"

namespace shadowprof::report {

class Shapes {
  public:
    // All the profiles that will be matched with each other.
    explicit Shapes(const std::vector<const Profile*>& profiles);
    profile::SourceNames names_of(const Profile& profile) const;

  private:
    bool is_same_build(const std::string& module) const;
    std::map<std::string, std::set<std::string>> builds_;  // of each module, by its shape
};

// The file name of the program that was profiled; empty if it is not known.
std::string program_of(const Profile& profile);

}  // namespace shadowprof::report
