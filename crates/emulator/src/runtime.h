// What a kernel and the runtime that launches it know of each other. One kernel and one runtime make a library.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct EmulatedBuffer {
    uintptr_t start;
    uintptr_t bytes;
    // Without what pads the last word of 16 bytes.
    uintptr_t len;
    // Where its own bytes start and end, in whole words of 4: those around them are others'.
    uintptr_t own_start, own_end;
    uintptr_t writable;
};

// One launch. The result is 0, or 1 with a zero-terminated message in `error`.
struct EmulatedLaunch {
    const void* params;
    uint64_t params_bytes;
    const EmulatedBuffer* buffers;
    uint32_t buffer_count;
    uint32_t threads;
    uint32_t blocks;
    uint32_t shared_bytes;
    // What a word of a buffer holds that nobody has written.
    uint32_t unwritten;
    char error[512];
};

extern "C" {
// Of the thread that runs; a thread's own do not change while it runs.
uint32_t emulator_thread() __attribute__((const));
uint32_t emulator_block() __attribute__((const));
uint32_t emulator_threads() __attribute__((const));
uint32_t emulator_blocks() __attribute__((const));

void emulator_syncthreads();
void emulator_syncwarp();
// The values that all lanes of the warp gave. Valid until the lane's next exchange.
const uint32_t* emulator_exchange(uint32_t mask, uint32_t value);
uint32_t emulator_atomic_add(uint32_t* place, uint32_t value);
uint32_t emulator_atomic_max(uint32_t* place, uint32_t value);
[[noreturn]] void emulator_fail(const char* what);

// Of the kernel's half.
extern const uint32_t emulator_params_bytes;
extern const uint32_t emulator_binding_count;
// For each binding, whether the kernel may write it.
const uint8_t* emulator_binding_flags();
void emulator_call(const void* params, void* const* buffers);
extern unsigned char emulator_dynamic_shared[];
}
