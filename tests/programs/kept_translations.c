// Two programs with the same build id, of which one is told from the other by its code alone.
#include <stdio.h>

__attribute__((noinline)) static unsigned step(unsigned x) {
    return x * FACTOR + 1;
}

int main(void) {
    unsigned x = 1;
    for (unsigned n = 0; n < 2000; ++n) x = step(x);
    printf("%u\n", x);
    return 0;
}
