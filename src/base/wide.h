// 128-bit integers: sums of squares of counts do not fit into 64 bits.
#pragma once

namespace shadowprof {

__extension__ typedef unsigned __int128 Wide;

}  // namespace shadowprof
