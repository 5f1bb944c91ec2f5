// Machine code of all kinds to test with: what is loaded into this process.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "decoder/instruction.h"

namespace shadowprof::decoder {

// Goes over the loaded executable segments from their beginnings, instruction by instruction. Bytes
// that are no instruction are skipped, so data among the code yields unusual instructions as well.
void for_each_loaded_instruction(const std::function<void(const Instruction&)>& visit);

}  // namespace shadowprof::decoder
