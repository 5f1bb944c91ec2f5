// Linked to a fixed low address, as Debian's python3 is. Its heap grows from there to 600 MB, of
// which it writes to a little. Exits with 22 if it got that much.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    const intptr_t piece = 1 << 20;
    for (int i = 0; i < 600; ++i) {
        volatile char* const begin = sbrk(piece);
        if ((intptr_t)begin == -1) {
            printf("no more than %d MB\n", i);
            return 1;
        }
        for (int at = 0; at < 1000; ++at) begin[at] = (char)at;
    }
    return 22;
}
