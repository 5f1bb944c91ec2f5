// Private to src/decoder.
#pragma once

#include "decoder/instruction.h"

namespace shadowprof::decoder {

// Sets right what the decoder library's tables leave out or state otherwise than the hardware does.
void correct(Instruction& instruction);

}  // namespace shadowprof::decoder
