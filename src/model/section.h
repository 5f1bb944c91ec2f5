// One section of a profile: what one profile type found, over locations by their index. hotlist.h
// makes sections of tables of fields; whoever handles a Profile as a whole knows no more of its
// sections than this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/json_cursor.h"
#include "model/json_output.h"
#include "model/run_facts.h"

namespace shadowprof::model {

// How much of a section is kept.
struct KeepOptions {
    std::size_t limit = 1000;  // entries kept in each hotlist, 0 = all
    // Kept of each instruction; what is dropped counts as unknown. All if `limit` is 0.
    std::size_t values_per_location = 16;
};

class Section {
  public:
    // Adds up sections of one type.
    class Sum {
      public:
        virtual ~Sum() = default;
        // Its locations are numbered as those before it. Throws UserError if a sum grows too large.
        virtual void add(const Section& section) = 0;
        // The sum so far, not yet in order.
        virtual std::unique_ptr<Section> take() = 0;
        // What a reader of the sum must know, if anything.
        virtual std::string warning() const = 0;
    };

    virtual ~Section() = default;
    virtual std::string_view key() const = 0;  // in the profile file
    virtual std::unique_ptr<Section> clone() const = 0;
    virtual bool equals(const Section& other) const = 0;

    virtual void write(JsonOutput& out) const = 0;
    virtual void read(JsonCursor& in) = 0;
    virtual std::string schema() const = 0;

    virtual void each_location(const std::function<void(LocationIndex&)>& use) = 0;
    // Which invariant does not hold, of those in profile.h.
    virtual std::optional<std::string> defect(std::size_t locations) const = 0;
    // What contradicts itself all the same, to be said after the section's name.
    virtual std::optional<std::string> doubt() const = 0;
    virtual bool is_exhaustive() const = 0;
    virtual bool has_dropped_entries() const = 0;

    // Gives operands of instructions their text.
    using OperandText = std::function<std::string(LocationIndex, std::uint32_t operand)>;
    virtual void name_operands(const OperandText& text) = 0;

    virtual std::unique_ptr<Sum> make_sum() const = 0;
    // By weight, then by what the entries are.
    virtual void sort() = 0;
    // Drops the last entries; they count as unknown.
    virtual void keep_strongest(const KeepOptions& options) = 0;
};

// A kind of section, as the list of profile types has it.
struct SectionType {
    std::string_view key;
    std::unique_ptr<Section> (*make)();
};
using SectionTypes = std::span<const SectionType>;

// The sections of a profile, in order.
class Sections {
  public:
    using Parts = std::vector<std::unique_ptr<Section>>;

    Sections() = default;
    Sections(const Sections& other);
    Sections(Sections&&) = default;
    Sections& operator=(const Sections& other) { return *this = Sections(other); }
    Sections& operator=(Sections&&) = default;
    bool operator==(const Sections& other) const;

    Parts::const_iterator begin() const { return parts_.begin(); }
    Parts::const_iterator end() const { return parts_.end(); }

    const Section* find(std::string_view key) const;
    Section* find(std::string_view key) {
        return const_cast<Section*>(std::as_const(*this).find(key));
    }
    // Takes the place of one with the same key; else it comes last.
    Section& put(std::unique_ptr<Section> section);
    void remove(std::string_view key);
    void put_in_order(SectionTypes types);

  private:
    Parts parts_;
};

}  // namespace shadowprof::model
