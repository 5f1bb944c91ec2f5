// Names for the stubs through which calls leave a module.
//
// A stub has no symbol. It jumps through a slot of the global offset table. The dynamic linker
// fills the slot, and the relocation of the slot names the function:
//
//     1030: endbr64                        .rela.plt:  3fd0  JUMP_SLOT  puts
//     1034: bnd jmp [rip+0x2f95]  ->  slot 3fd0        hence 1030 is "puts@plt"
#pragma once

#include <vector>

#include "report/symbols/symbol_file.h"

namespace shadowprof::report {

std::vector<Function> plt_stubs(const ElfImage& image, const FunctionTable& functions);

}  // namespace shadowprof::report
