// A profile's facts about the control flow of one binary, in the form that tools for optimising
// binaries take: the branches that were taken, and the stretches of code between them.
//
// Both follow from edges. Code entered at some address runs on to the first branch after it, and
// then goes where that branch's edges lead; so a stretch begins wherever an edge leads, and ends at
// the first instruction that an edge leaves from. It ran as often as the edges lead there:
//
//     30 -> a:  mov            edges: 30 × into a, 50 × into b,
//               add                   20 × c taken, 60 × c fallen through to d
//     50 -> b:  cmp
//           c:  jne  -> 20     stretches: a to c 30 ×, b to c 50 ×, d … 60 ×
//     60 -> d:  …
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

struct ModuleBranch {
    std::uint64_t from = 0;  // link-time addresses
    std::uint64_t to = 0;
    bool from_inside = true;  // in this module; otherwise the address says nothing
    bool to_inside = true;
    EdgeKind kind{};
    std::uint64_t count = 0;
};

struct CodeRange {
    std::uint64_t begin = 0;
    std::uint64_t last = 0;  // its last instruction
    std::uint64_t count = 0;
};

class ModuleBranches {
  public:
    // The module by path or file name; the program itself if that is empty. Throws UserError.
    ModuleBranches(const Profile& profile, const std::string& module);

    const Module& module() const { return module_; }
    const std::vector<ModuleBranch>& all() const { return branches_; }
    std::vector<CodeRange> ranges() const;  // they may overlap
    std::vector<std::string> notes() const;

  private:
    Module module_;
    std::vector<ModuleBranch> branches_;  // by address
    bool dropped_ = false;
    bool sampled_ = false;
};

// The same as ranges that do not overlap, each with the sum of the ranges that cover it. A range
// ends where the next begins. Where none follows, the last instruction counts as one byte long,
// because its end is not known.
std::vector<CodeRange> disjoint(const std::vector<CodeRange>& ranges);

}  // namespace shadowprof::report
