#include "model/sums.h"

#include "base/error.h"

namespace shadowprof::model {

void throw_too_large() {
    throw UserError("cannot merge: a count grows beyond 64 bits");
}

void add_up(std::uint64_t& into, std::uint64_t more) {
    if (__builtin_add_overflow(into, more, &into)) throw_too_large();
}

void add_up(std::int64_t& into, std::int64_t more) {
    if (__builtin_add_overflow(into, more, &into)) throw_too_large();
}

void add_up(Totals& into, const Totals& other) {
    const auto before = into;
    into.merge(other);
    if (into.total < before.total || into.total_squares < before.total_squares ||
        into.samples < before.samples)
        throw_too_large();
}

void add_up(Statistics& into, const Statistics& other) {
    const auto before = into;
    into.merge(other);
    if (into.count < before.count || into.squares < before.squares ||
        into.products < before.products || into.samples < before.samples)
        throw_too_large();
}

}  // namespace shadowprof::model
