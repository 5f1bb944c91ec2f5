// Private to src/decoder: the decoder library, set up once.
#pragma once

#include <Zydis/Zydis.h>

namespace shadowprof::decoder {

// Long mode. MPX is off: no processor in use has it, and its encodings run as the NOPs they were.
const ZydisDecoder& long_mode_decoder();

// For kind `other`: the library's register, counted from here.
inline constexpr int first_other_register = ZYDIS_REGISTER_TMM0;

}  // namespace shadowprof::decoder
