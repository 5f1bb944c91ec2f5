// Where functions find their parameters, by DWARF and the calling convention.
#pragma once

#include <elfutils/libdw.h>

#include <cstddef>
#include <vector>

#include "report/model/profile.h"

namespace shadowprof::report {

struct PassedParameter {
    Parameter parameter;
    std::size_t number = 0;  // of the register, among trace::argument_registers
};

// Those that are in integer registers as the function begins. Where it says so itself, as optimised
// code mostly does, that is believed; otherwise the calling convention says it, unless the compiler
// may not have kept to it (`is_changed`).
std::vector<PassedParameter> parameters_of(Dwarf_Die unit, Dwarf_Die function, Dwarf_Addr entry,
                                           bool is_changed);

}  // namespace shadowprof::report
