// Finds the data streams in references to data that are looked at one after the other.
//
// Left out are references to the address that the instruction accessed the last time as well: such
// data are in the nearest cache, and would take each sequence apart.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "profile/common/hotlists.h"
#include "profile/common/known_blocks.h"
#include "profile/common/variables.h"
#include "profile/stream/reference_graph.h"
#include "profile/stream/stream_section.h"

namespace shadowprof::profile {

// Bytes of an access that is a reference to data: 0 if it is none, or none for certain.
std::uint8_t bytes_of_reference(const decoder::Instruction& instruction,
                                const decoder::Operand& operand);

class StreamDetector {
  public:
    explicit StreamDetector(FunctionMap& variables) : variables_(variables) {}

    // Where modules are is known by the blocks of their code.
    void learn(const trace::Block& block) { variables_.learn(block); }
    PlaceNumber number_of(const Location& place, std::uint8_t bytes);
    // False if it is left out.
    bool add(ReferenceGraph& of_sample, ReferenceGraph::Cursor& at, const Reference& reference) {
        if (std::exchange(last_address_[reference.place], reference.address) == reference.address)
            return false;
        of_sample.add(at, reference);
        return true;
    }
    // Adds up a sample, which is empty then: a reference stands for `all` / `of` of the sample's.
    void fold(ReferenceGraph& of_sample, std::uint64_t all, std::uint64_t of);

    // Those that look alike, at other addresses, are one for whoever reads it. Their statistics
    // are of totals in which each sample that was folded had its `all`.
    std::vector<StreamHotlist::Entry> streams(const Totals& totals);

  private:
    struct Sums {
        Statistics strongest;  // of the node that counts most: how samples vary
        std::uint64_t count = 0, times = 0, lines = 0, packed_lines = 0;
        double regular = 0;
    };
    using Looks = std::pair<std::vector<StreamReference<Location>>, std::optional<Location>>;

    void add(const ReferenceGraph::Stream& stream, std::map<Looks, Sums>& streams);
    std::uint64_t count_of(const ReferenceGraph::Stream& stream) const;
    Looks looks_of(const std::vector<Reference>& references);

    Variables variables_;
    PlaceNumbers places_;
    std::vector<std::uint8_t> bytes_at_;       // by place: of an access
    std::vector<std::uint64_t> last_address_;  // by place
    ReferenceGraph graph_;
};

}  // namespace shadowprof::profile
