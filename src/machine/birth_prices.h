// What births cost a program here, besides the time that it stands still for them.
#pragma once

#include "base/clock.h"
#include "sampling/options.h"

namespace shadowprof::machine {

struct BirthPrices {
    Seconds of_copy;         // of a first write to a page that a replica shares
    Seconds of_aftermath;    // or that a dead one shared
    Seconds of_fork;         // of a small process
    Seconds of_one_between;  // that it is somebody else who forks it
};

// Measured in a process of our own, at the first question, which takes some ten milliseconds, or 50
// where they are dear.
const BirthPrices& birth_prices();

// A hypervisor keeps page tables of its own: a copy of a page by a trap is dear, as is all that
// enters the kernel.
bool faults_are_dear();

// That so many pages' tables are copied.
Seconds price_of_page_tables(double pages);

}  // namespace shadowprof::machine
