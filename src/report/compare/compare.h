// How accurate a sampled profile is, measured against a perfect one of the same program: all the
// measures of accuracy.h, for the program and for each of its functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/compare/accuracy.h"
#include "report/diff/align.h"
#include "report/model/profile.h"

namespace shadowprof::report {

// A measure, or why there is none.
template <class M>
struct Measured {
    std::optional<M> measure;
    std::string why_not;  // one line; empty if there is a measure
};

struct ComparedProfile {
    std::string name;
    std::string command;
    std::string mode;
    std::uint64_t samples = 0;
    std::uint64_t instructions = 0;
    bool exhaustive = false;  // all its hotlists are
};

// What one profile lists of a hotlist.
struct ListExtent {
    std::uint64_t entries = 0;
    std::uint64_t dropped = 0;
    double unlisted = 0;  // the share of events that are in none of the entries
};
struct ComparedList {
    std::string_view name;  // "paths"
    ListExtent sampled, perfect;
    std::uint64_t in_both = 0;
};

// The figures of one function, from the entries that both profiles list for it; there is no figure
// where one of them lists none. A path belongs to the function it begins in, an edge or a call to
// the function it comes from. Shares of edges and calls are of those of the function.
struct ComparedFunction {
    std::string name;    // empty if no symbol names it
    std::string module;  // path
    std::optional<std::uint64_t> offset;
    std::string label, place;             // to print
    std::optional<double> sampled_share;  // of all instructions
    std::optional<double> perfect_share;
    std::optional<double> path_accuracy, edge_accuracy, call_overlap, diff_top;
};

struct Comparison {
    ComparedProfile sampled, perfect;
    Measured<double> coverage;
    Measured<PathAccuracy> paths;
    Measured<Figure> edges;
    Measured<TopOverlap> calls, methods, streams;
    Measured<DiffTop> values;
    std::vector<ComparedList> lists;          // those that are in both
    std::vector<ComparedFunction> functions;  // the hottest in the perfect profile first
    std::vector<std::string> notes;           // for the reader of the figures

    bool is_exact() const;  // nothing was dropped that could change a figure
};

// Throws UserError(incomparable): see align(); or if there is nothing to compare.
Comparison compare(NamedProfile sampled, NamedProfile perfect);

}  // namespace shadowprof::report
