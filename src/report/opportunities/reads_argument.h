// Whether a function reads a register before it writes it, by its instructions from the entry on.
// The instructions are from the file if it is there, otherwise those that the profile quotes.
#pragma once

#include "report/opportunities/evidence.h"
#include "report/symbols/symbols.h"

namespace shadowprof::report {

bool reads_argument(const Evidence& evidence, Symbols& symbols, Point entry, RegisterFamily family);

}  // namespace shadowprof::report
