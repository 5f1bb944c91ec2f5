// Reading DWARF's entries, which libdw makes wordy.
#pragma once

#include <elfutils/libdw.h>

#include <cstddef>
#include <cstdint>

namespace shadowprof::report {

// Entries within entries are followed so far, and so many pieces of code are taken of a file. Only
// a hostile one has more.
inline constexpr unsigned deepest_entry = 200;
inline constexpr std::size_t most_ranges = 4'000'000;

// Until `visit` returns false.
template <class Visit>
void each_child(Dwarf_Die parent, Visit visit) {
    Dwarf_Die child;
    if (dwarf_child(&parent, &child) != 0) return;
    do {
        if (!visit(child)) return;
    } while (dwarf_siblingof(&child, &child) == 0);
}

// 0 if there is none.
inline std::uint64_t number(Dwarf_Die& die, unsigned which) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    return dwarf_formudata(dwarf_attr(&die, which, &attribute), &value) == 0 ? value : 0;
}

}  // namespace shadowprof::report
