// Random numbers, the same in each run.
#pragma once

#include <stdint.h>

static uint64_t draw(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
