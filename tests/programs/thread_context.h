// A thread's context as OpenTelemetry's OTEP 4947 has it, published by the program itself or by a
// library of its own.
#pragma once

#include <stdint.h>

struct thread_context {
    uint8_t trace[16];
    uint8_t span[8];
    volatile uint8_t valid;
    uint8_t flags;
    uint16_t size;
    uint8_t attributes[64];
};

// This thread works for that now, or for nothing.
void publish(struct thread_context* context);
