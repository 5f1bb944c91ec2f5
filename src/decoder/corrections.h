// Private to src/decoder.
#pragma once

#include "decoder/instruction.h"

namespace shadowprof::decoder {

// Corrects the decoder library's tables where they leave something out or differ from the hardware.
void correct(Instruction& instruction, std::span<Operand> operands);

}  // namespace shadowprof::decoder
