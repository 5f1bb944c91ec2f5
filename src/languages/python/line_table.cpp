#include "languages/python/line_table.h"

#include <limits>

namespace shadowprof::languages::python {

namespace {

using Bytes = std::span<const std::byte>;

std::optional<std::uint32_t> as_line(std::int64_t line) {
    if (line < 0 || line > std::numeric_limits<std::uint32_t>::max()) return {};
    return static_cast<std::uint32_t>(line);
}

std::uint8_t unsigned_at(Bytes table, std::size_t n) {
    return static_cast<std::uint8_t>(table[n]);
}
std::int8_t signed_at(Bytes table, std::size_t n) {
    return static_cast<std::int8_t>(table[n]);
}

// How far to the next line, and by how many lines.
std::optional<std::uint32_t> in_increments(Bytes table, std::int64_t line, std::int64_t position) {
    std::int64_t at = 0;
    for (std::size_t n = 0; n + 1 < table.size(); n += 2) {
        at += unsigned_at(table, n);
        if (at > position) break;
        line += signed_at(table, n + 1);
    }
    return as_line(line);
}

// By how many lines, and for how long.
std::optional<std::uint32_t> in_ranges(Bytes table, std::int64_t line, std::int64_t position) {
    constexpr std::int8_t no_line = -128;
    std::int64_t end = 0;
    for (std::size_t n = 0; n + 1 < table.size(); n += 2) {
        const auto change = signed_at(table, n + 1);
        if (change != no_line) line += change;
        end += unsigned_at(table, n);
        if (position < end) return change == no_line ? std::nullopt : as_line(line);
    }
    return {};
}

// Entries of a byte that says their kind and how much code they are for, and some more.
class Locations {
  public:
    explicit Locations(Bytes table) : table_(table) {}

    std::optional<std::uint32_t> find(std::int64_t line, std::int64_t position) {
        constexpr unsigned short_form_ends = 10, one_line_ends = 13, no_columns = 13, full = 14,
                           unit = 2;
        std::int64_t end = 0;
        while (next_ < table_.size()) {
            const auto head = unsigned_at(table_, next_++);
            const unsigned kind = head >> 3 & 15u;
            end += static_cast<std::int64_t>((head & 7u) + 1) * unit;
            bool has_line = true;
            if (kind >= short_form_ends && kind < one_line_ends)
                line += kind - short_form_ends;
            else if (kind == no_columns || kind == full)
                line += signed_number();
            else
                has_line = kind < short_form_ends;
            if (position < end) return has_line ? as_line(line) : std::nullopt;
            skip_entry();
        }
        return {};
    }

  private:
    // Only the first byte of an entry has its uppermost bit set.
    void skip_entry() {
        while (next_ < table_.size() && (unsigned_at(table_, next_) & 0x80) == 0) ++next_;
    }
    // Six bits a byte, the lowest first.
    std::int64_t signed_number() {
        std::uint64_t number = 0;
        for (unsigned shift = 0; next_ < table_.size() && shift < 36; shift += 6) {
            const std::uint64_t byte = unsigned_at(table_, next_++);
            number |= (byte & 0x3f) << shift;
            if ((byte & 0x40) == 0) break;
        }
        const auto amount = static_cast<std::int64_t>(number >> 1);
        return number & 1 ? -amount : amount;
    }

    Bytes table_;
    std::size_t next_ = 0;
};

}  // namespace

std::optional<std::uint32_t> line_at(LineTable kind, Bytes table, std::uint32_t first_line,
                                     std::int64_t position) {
    if (position < 0) position = 0;  // nothing is executed yet
    switch (kind) {
        case LineTable::increments:
            return in_increments(table, first_line, position);
        case LineTable::ranges:
            return in_ranges(table, first_line, position);
        case LineTable::locations:
            return Locations{table}.find(first_line, position);
    }
    return {};
}

}  // namespace shadowprof::languages::python
