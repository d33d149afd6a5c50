// Launches one kernel on the host, and watches it.
//
// Blocks run one after another, and within a block each thread is a fiber that runs until it waits for others or ends.
// The kernel is compiled with the instrumentation of GCC's thread and undefined-behaviour sanitizers, whose runtimes this
// file replaces: every access to memory that others can see comes by `access`, every undefined operation by `undefined`.
// So, independent of the order in which threads run, a launch fails on
//   bounds     an access outside of the buffers, shared memory and the thread's own stack, or a write to what is read only
//   races      two accesses of one 32-bit word, at least one of them a write, by threads without a barrier between them;
//              unless both are volatile or atomic. Blocks have no barrier between them
//   barriers   that some threads of the block, or of the warp, do not reach
//   undefined  operations of C++
//   reads      of shared memory that nobody wrote, and of words of a buffer that hold what new memory is filled with
//
// A launch uses the state below alone: launches of one library follow one another.

#include "runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr uint32_t LANES = 32;
constexpr uint32_t MOST_THREADS = 1024;
constexpr uint32_t MOST_BUFFERS = 16;
constexpr uint32_t MOST_PARAMS_BYTES = 4096;
constexpr size_t STACK_BYTES = 128 << 10;
constexpr uint64_t CANARY = 0x5a17ed5a17ed5a17;
// Bytes behind a buffer that a message counts from its start.
constexpr size_t NEAR = 4096;
// Reads of volatile memory in a row, after which a thread is taken to wait for another block.
constexpr uint32_t MOST_VOLATILE_READS = 1 << 20;

enum State : uint8_t { READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, AT_EXCHANGE, DONE };

enum Access : uint8_t { READ, WRITE, SOFT_READ, SOFT_WRITE };

// What is known of the accesses to a word. Time counts the block's barriers and does not stop between blocks or launches;
// warp time counts those of a warp too. What is from before the launch says nothing.
struct Word {
    uint32_t write_time, write_warp_time;
    uint32_t read_time, read_warp_time;
    uint16_t writer, reader;
    bool soft_write, soft_read;
    bool threads; // it was read at that time by several threads of the reader's warp
    bool warps;   // … of several warps
    bool blocks;  // it was read by several blocks
};

struct Region {
    uintptr_t start, end;
    uintptr_t filled; // where the words end that new memory is filled with
    uintptr_t own_start, own_end;
    Word* words;
    bool writable, shared;
};

const EmulatedLaunch* launch;
char* error;
uint32_t thread, block;
uint32_t now, launch_start, block_start;
uint32_t warp_now[MOST_THREADS / LANES];
uint32_t volatile_reads;
State states[MOST_THREADS];
uint32_t slots[2][MOST_THREADS];
uint8_t turns[MOST_THREADS];
// The buffers, then dynamic and static shared memory.
Region regions[MOST_BUFFERS + 2];
uint32_t region_count;
alignas(16) char params[MOST_PARAMS_BYTES];
void* buffers[MOST_BUFFERS];
char* stacks;
uintptr_t stack; // of the thread that runs

#if defined(__x86_64__) && !defined(EMULATOR_UCONTEXT)

void* scheduler;
void* fibers[MOST_THREADS];

asm(R"(
.text
.type emulator_switch, @function
emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
extern "C" void emulator_switch(void** from, void* to) __attribute__((visibility("hidden")));

void enter() { emulator_switch(&scheduler, fibers[thread]); }
void leave() { emulator_switch(&fibers[thread], scheduler); }

void prepare(uint32_t t, void (*body)()) {
    // As if it had just called the switch: six registers, the place to return to, and the alignment of a call.
    void** top = reinterpret_cast<void**>(stacks + (t + 1) * STACK_BYTES) - 2;
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(body);
    for (int i = 0; i < 6; i++) *--top = nullptr;
    fibers[t] = top;
}

#else

#include <ucontext.h>

ucontext_t scheduler;
ucontext_t fibers[MOST_THREADS];

void enter() { swapcontext(&scheduler, &fibers[thread]); }
void leave() { swapcontext(&fibers[thread], &scheduler); }

void prepare(uint32_t t, void (*body)()) {
    getcontext(&fibers[t]);
    fibers[t].uc_stack.ss_sp = stacks + t * STACK_BYTES;
    fibers[t].uc_stack.ss_size = STACK_BYTES;
    fibers[t].uc_link = nullptr;
    makecontext(&fibers[t], body, 0);
}

#endif

void report(const char* format, ...) {
    if (error[0] != 0) return;
    int length = snprintf(error, sizeof launch->error, "block %u, thread %u ", block, thread);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error + length, sizeof launch->error - length, format, arguments);
    va_end(arguments);
}

// Ends the launch, from a thread of the kernel.
[[noreturn]] void stop() {
    leave();
    abort();
}

void wait(State state) {
    states[thread] = state;
    volatile_reads = 0;
    leave();
}

uint32_t warp() { return thread / LANES; }

bool is_write(Access kind) { return kind == WRITE || kind == SOFT_WRITE; }

bool is_soft(Access kind) { return kind >= SOFT_READ; }

[[noreturn]] void race(const Region& region, uintptr_t address, Access kind, uint32_t other, bool other_block,
                       const char* before) {
    char place[64], who[64];
    if (region.shared) {
        snprintf(place, sizeof place, "byte %zu of shared memory", (size_t)(address - region.start));
    } else {
        snprintf(place, sizeof place, "byte %zu of buffer %zu", (size_t)(address - region.start),
                 (size_t)(&region - regions));
    }
    if (other_block) {
        snprintf(who, sizeof who, "another block");
    } else if (other == UINT16_MAX) {
        snprintf(who, sizeof who, "several threads");
    } else {
        snprintf(who, sizeof who, "thread %u", other);
    }
    report("%s %s, which %s %s, without a barrier between", is_write(kind) ? "writes" : "reads", place, who, before);
    stop();
}

void touch(const Region& region, uintptr_t address, Access kind) {
    Word& word = region.words[(address - region.start) / 4];
    bool soft = is_soft(kind);
    uint32_t warp_time = warp_now[warp()];
    bool here = word.write_time >= block_start;
    if (region.shared && !here && !is_write(kind)) {
        report("reads byte %zu of shared memory, which no thread has written", (size_t)(address - region.start));
        stop();
    }
    if (word.write_time > launch_start && !(soft && word.soft_write)) {
        bool ordered = word.writer == thread || (word.writer / LANES == warp() && word.write_warp_time < warp_time);
        if (!here && !region.shared) race(region, address, kind, 0, true, "wrote");
        if (word.write_time == now && !ordered) race(region, address, kind, word.writer, false, "wrote");
    }
    bool read_here = word.read_time >= block_start;
    if (is_write(kind)) {
        if (word.read_time > launch_start && !(soft && word.soft_read)) {
            bool mine = word.reader == thread && !word.threads;
            bool ordered = !word.warps && (mine || (word.reader / LANES == warp() && word.read_warp_time < warp_time));
            if ((!read_here || word.blocks) && !region.shared) race(region, address, kind, 0, true, "read");
            if (word.read_time == now && !ordered) {
                bool many = word.threads || word.warps;
                race(region, address, kind, many ? UINT16_MAX : word.reader, false, "read");
            }
        }
        word.write_time = now;
        word.write_warp_time = warp_time;
        word.writer = thread;
        word.soft_write = soft;
        return;
    }
    if (word.read_time != now) {
        word.blocks = word.read_time > launch_start && (word.blocks || !read_here);
        word.soft_read = soft && (word.soft_read || !word.blocks);
        word.threads = word.warps = false;
    } else {
        word.soft_read = soft && word.soft_read;
        if (word.reader / LANES != warp()) {
            word.warps = true;
        } else if (word.read_warp_time < warp_time) {
            word.threads = false;
        } else if (word.reader != thread) {
            word.threads = true;
        }
    }
    word.read_time = now;
    word.read_warp_time = warp_time;
    word.reader = thread;
}

// The library itself, from its first byte in memory to its last: constants, and what belongs to this runtime.
extern "C" char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" char _end[] __attribute__((visibility("hidden")));
// Static shared memory, if the kernel has any.
extern "C" char __start_emulator_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_emulator_shared[] __attribute__((weak, visibility("hidden")));

// Whether a word of a buffer holds what new memory is filled with, and one beside it too: values that happen to do so are
// not taken for it.
bool is_unwritten(const Region& region, uintptr_t address) {
    auto filled = [&](uintptr_t word) {
        return word >= region.start && word + 4 <= region.filled &&
               *reinterpret_cast<const uint32_t*>(word) == launch->unwritten;
    };
    bool alone = region.filled - region.start < 8;
    return filled(address) && (alone || filled(address - 4) || filled(address + 4));
}

__attribute__((noinline)) void shared_access(uintptr_t address, size_t bytes, Access kind) {
    uintptr_t end = address + bytes;
    if (kind == SOFT_READ && ++volatile_reads > MOST_VOLATILE_READS) {
        report("waits for what no block before it has written");
        stop();
    }
    for (uint32_t r = 0; r < region_count; r++) {
        const Region& region = regions[r];
        if (address < region.start || end > region.end) continue;
        if (is_write(kind) && !region.writable) {
            report("writes byte %zu of buffer %u, which is only read", (size_t)(address - region.start), r);
            stop();
        }
        for (address &= ~(uintptr_t)3; address < end; address += 4) {
            if (address < region.own_start || address >= region.own_end) {
                if (!is_write(kind)) continue;
                report("writes byte %zu of buffer %u, which is of another view", (size_t)(address - region.start), r);
                stop();
            }
            if (!is_write(kind) && is_unwritten(region, address)) {
                report("reads byte %zu of buffer %u, which nobody has written", (size_t)(address - region.start), r);
                stop();
            }
            touch(region, address, kind);
        }
        return;
    }
    bool constant = address >= reinterpret_cast<uintptr_t>(__ehdr_start) && end <= reinterpret_cast<uintptr_t>(_end);
    if (constant && !is_write(kind)) return;
    const Region* before = nullptr;
    for (uint32_t r = 0; r < region_count; r++) {
        const Region& region = regions[r];
        bool nearer = before == nullptr || region.start > before->start;
        if (address >= region.start && address < region.end + NEAR && nearer) before = &region;
    }
    if (before != nullptr) {
        report("%s %zu bytes at byte %zu of a %s of %zu bytes", is_write(kind) ? "writes" : "reads", bytes,
               (size_t)(address - before->start), before->shared ? "shared memory" : "buffer",
               (size_t)(before->end - before->start));
        stop();
    }
    report("%s %zu bytes outside of its buffers", is_write(kind) ? "writes" : "reads", bytes);
    stop();
}

// Most accesses are to the thread's own stack.
inline void access(const void* pointer, size_t bytes, Access kind) {
    uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
    if (address - stack > STACK_BYTES - bytes) shared_access(address, bytes, kind);
}

struct SourceLocation {
    const char* file;
    uint32_t line;
    uint32_t column;
};

// What the sanitizer hands over starts with the place.
[[noreturn]] void undefined(const void* data, const char* what) {
    const SourceLocation* place = static_cast<const SourceLocation*>(data);
    report("at %s:%u: undefined behaviour: %s", place->file, place->line, what);
    stop();
}

void body() {
    emulator_call(params, buffers);
    states[thread] = DONE;
    leave();
    abort();
}

// Whether all lanes of a warp that are not done wait for the same, and so may go on.
bool release_warp(uint32_t first, uint32_t end) {
    uint32_t waiting = 0;
    State what = DONE;
    for (uint32_t t = first; t < end; t++) {
        if (states[t] == AT_WARP_BARRIER || states[t] == AT_EXCHANGE) {
            waiting++;
            what = states[t];
            thread = t;
        }
    }
    if (waiting == 0) return false;
    for (uint32_t t = first; t < end; t++) {
        if (states[t] != what) {
            report("waits for its warp, while thread %u %s", t,
                   states[t] == DONE ? "has ended" : "waits for something else");
            return false;
        }
    }
    if (what == AT_WARP_BARRIER) warp_now[first / LANES]++;
    for (uint32_t t = first; t < end; t++) states[t] = READY;
    return true;
}

void run_block() {
    uint32_t threads = launch->threads;
    block_start = ++now;
    for (uint32_t& time : warp_now) time = 1;
    for (uint32_t t = 0; t < threads; t++) {
        states[t] = READY;
        turns[t] = 0;
        prepare(t, body);
    }
    while (true) {
        for (uint32_t first = 0; first < threads; first += LANES) {
            uint32_t end = first + LANES < threads ? first + LANES : threads;
            do {
                for (uint32_t t = first; t < end; t++) {
                    thread = t;
                    stack = reinterpret_cast<uintptr_t>(stacks) + t * STACK_BYTES;
                    if (states[t] == READY) enter();
                    if (error[0] != 0) return;
                }
            } while (release_warp(first, end));
            if (error[0] != 0) return;
        }
        uint32_t done = 0, last_waiting = 0;
        for (uint32_t t = 0; t < threads; t++) {
            done += states[t] == DONE;
            if (states[t] != DONE) last_waiting = t;
        }
        if (done == threads) return;
        if (done > 0) {
            thread = last_waiting;
            report("waits at a barrier that %u of %u threads do not reach", done, threads);
            return;
        }
        now++;
        for (uint32_t& time : warp_now) time++;
        for (uint32_t t = 0; t < threads; t++) states[t] = READY;
    }
}

void* pages(size_t bytes) {
    void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? nullptr : start;
}

size_t shadow_bytes(const Region& region) { return ((region.end - region.start) / 4 + 1) * sizeof(Word); }

// Words of regions, kept from launch to launch: new pages take longer than short launches.
struct Kept {
    Word* words;
    size_t bytes;

    ~Kept() {
        if (words != nullptr) munmap(words, bytes);
    }
} kept[MOST_BUFFERS + 2];

// So many bytes of a region's words are kept at most.
constexpr size_t MOST_KEPT_BYTES = 1 << 20;

Word* words_for(Kept& place, size_t bytes) {
    if (bytes > MOST_KEPT_BYTES) return static_cast<Word*>(pages(bytes));
    if (bytes > place.bytes) {
        if (place.words != nullptr) munmap(place.words, place.bytes);
        place.words = static_cast<Word*>(pages(bytes));
        place.bytes = place.words == nullptr ? 0 : bytes;
    }
    return place.words;
}

bool add_region(Region region) {
    region.words = words_for(kept[region_count], shadow_bytes(region));
    if (region.words == nullptr) return false;
    regions[region_count++] = region;
    return true;
}

uint64_t& canary(uint32_t t) { return *reinterpret_cast<uint64_t*>(stacks + t * STACK_BYTES); }

struct FreeStacks {
    ~FreeStacks() {
        if (stacks != nullptr) munmap(stacks, MOST_THREADS * STACK_BYTES);
    }
} free_stacks;

} // namespace

uint32_t emulator_thread() { return thread; }
uint32_t emulator_block() { return block; }
uint32_t emulator_threads() { return launch->threads; }
uint32_t emulator_blocks() { return launch->blocks; }

void emulator_fail(const char* what) {
    report("%s", what);
    stop();
}

void emulator_syncthreads() { wait(AT_BLOCK_BARRIER); }

void emulator_syncwarp() { wait(AT_WARP_BARRIER); }

// Two rows of slots in turn: a lane writes one again only when all have read it.
const uint32_t* emulator_exchange(uint32_t mask, uint32_t value) {
    if (mask != 0xffffffffu) emulator_fail("exchanges values with a part of a warp");
    uint32_t* row = slots[turns[thread] ^= 1];
    row[thread] = value;
    wait(AT_EXCHANGE);
    return row + thread / LANES * LANES;
}

uint32_t emulator_atomic_add(uint32_t* place, uint32_t value) {
    access(place, sizeof *place, SOFT_WRITE);
    uint32_t before = *place;
    *place += value;
    return before;
}

uint32_t emulator_atomic_max(uint32_t* place, uint32_t value) {
    access(place, sizeof *place, SOFT_WRITE);
    uint32_t before = *place;
    *place = before > value ? before : value;
    return before;
}

EXPORT int emulator_run(EmulatedLaunch* job) {
    launch = job;
    error = job->error;
    error[0] = 0;
    // Far from where the count of time would start anew.
    if (now > UINT32_MAX / 2) {
        for (Kept& place : kept) {
            if (place.words != nullptr) memset(place.words, 0, place.bytes);
        }
        now = 0;
    }
    launch_start = now;
    region_count = 0;
    volatile_reads = 0;
    bool ready = job->threads <= MOST_THREADS && job->buffer_count <= MOST_BUFFERS &&
                 job->params_bytes <= MOST_PARAMS_BYTES;
    if (stacks == nullptr) stacks = static_cast<char*>(pages(MOST_THREADS * STACK_BYTES));
    ready = ready && stacks != nullptr;
    for (uint32_t b = 0; ready && b < job->buffer_count; b++) {
        const EmulatedBuffer& buffer = job->buffers[b];
        buffers[b] = reinterpret_cast<void*>(buffer.start);
        ready = add_region({buffer.start, buffer.start + buffer.bytes, buffer.start + buffer.len,
                            buffer.start + buffer.own_start, buffer.start + buffer.own_end, nullptr, buffer.writable != 0,
                            false});
    }
    auto add_shared = [](const void* memory, size_t bytes) {
        uintptr_t start = reinterpret_cast<uintptr_t>(memory), end = start + bytes;
        return add_region({start, end, start, start, end, nullptr, true, true});
    };
    ready = ready && add_shared(emulator_dynamic_shared, job->shared_bytes);
    size_t statics = __stop_emulator_shared - __start_emulator_shared;
    if (statics > 0) {
        ready = ready && add_shared(__start_emulator_shared, statics);
    }
    if (ready) memcpy(params, job->params, job->params_bytes);
    if (!ready) snprintf(error, sizeof job->error, "out of memory, or more threads or buffers than there may be");
    for (uint32_t t = 0; ready && t < job->threads; t++) canary(t) = CANARY;
    for (block = 0; ready && block < job->blocks && error[0] == 0; block++) run_block();
    for (uint32_t t = 0; ready && t < job->threads; t++) {
        if (error[0] == 0 && canary(t) != CANARY) snprintf(error, sizeof job->error, "thread %u has left its stack", t);
    }
    for (uint32_t r = 0; r < region_count; r++) {
        if (shadow_bytes(regions[r]) > MOST_KEPT_BYTES) munmap(regions[r].words, shadow_bytes(regions[r]));
    }
    return error[0] != 0;
}

EXPORT uint32_t emulator_kernel_params_bytes() { return emulator_params_bytes; }
EXPORT uint32_t emulator_kernel_bindings() { return emulator_binding_count; }
EXPORT const uint8_t* emulator_kernel_flags() { return emulator_binding_flags(); }

// The functions that GCC's -fsanitize=thread calls.

#define ACCESSES(bytes)                                                                                               \
    extern "C" void __tsan_read##bytes(void* p) { access(p, bytes, READ); }                                           \
    extern "C" void __tsan_write##bytes(void* p) { access(p, bytes, WRITE); }                                         \
    extern "C" void __tsan_unaligned_read##bytes(void* p) { access(p, bytes, READ); }                                 \
    extern "C" void __tsan_unaligned_write##bytes(void* p) { access(p, bytes, WRITE); }                               \
    extern "C" void __tsan_volatile_read##bytes(void* p) { access(p, bytes, SOFT_READ); }                             \
    extern "C" void __tsan_volatile_write##bytes(void* p) { access(p, bytes, SOFT_WRITE); }                           \
    extern "C" void __tsan_unaligned_volatile_read##bytes(void* p) { access(p, bytes, SOFT_READ); }                   \
    extern "C" void __tsan_unaligned_volatile_write##bytes(void* p) { access(p, bytes, SOFT_WRITE); }

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

extern "C" void __tsan_read_range(void* p, size_t bytes) { access(p, bytes, READ); }
extern "C" void __tsan_write_range(void* p, size_t bytes) { access(p, bytes, WRITE); }
extern "C" void __tsan_init() {}

// The functions that GCC's -fsanitize=undefined -fno-sanitize-recover=all calls.

#define UNDEFINED(name, what)                                                                                         \
    extern "C" void __ubsan_handle_##name(const void* data) { undefined(data, what); }

UNDEFINED(type_mismatch_v1_abort, "an address that is not aligned, null or outside of its object")
UNDEFINED(alignment_assumption_abort, "an address that is not aligned")
UNDEFINED(pointer_overflow_abort, "a pointer overflows")
UNDEFINED(out_of_bounds_abort, "an index outside of its array")
UNDEFINED(shift_out_of_bounds_abort, "a shift by more than the width, or of a negative number")
UNDEFINED(add_overflow_abort, "a signed sum overflows")
UNDEFINED(sub_overflow_abort, "a signed difference overflows")
UNDEFINED(mul_overflow_abort, "a signed product overflows")
UNDEFINED(negate_overflow_abort, "a signed negation overflows")
UNDEFINED(divrem_overflow_abort, "a division by zero, or one that overflows")
UNDEFINED(load_invalid_value_abort, "a value that its type does not have")
UNDEFINED(float_cast_overflow_abort, "a number too large for its type")
UNDEFINED(nonnull_arg_abort, "a null argument")
UNDEFINED(invalid_builtin_abort, "an argument that a built-in function does not take")
UNDEFINED(vla_bound_not_positive_abort, "an array without elements")
UNDEFINED(builtin_unreachable, "an end that cannot be reached")
UNDEFINED(missing_return, "a function that ends without a value")
