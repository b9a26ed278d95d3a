/* CUDA C on the host, for tests: each thread of a block is a context of its own, threads meet at barriers, and what stands in asm is done
 * here as the PTX manual says. The text of a kernel is compiled as C++ after this file; asm statements have become emulated_asm calls
 * (nvrtc.c). A barrier that not all threads reach ends the process. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <math.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __shared__
#define __forceinline__ inline
#define __launch_bounds__(n)
#define __align__(n) __attribute__((aligned(n)))

struct emulated_three {
    unsigned x, y, z;
};
static emulated_three threadIdx, blockIdx, blockDim, gridDim;

enum { WARP = 32, MOST_THREADS = 1024, STACK = 256 << 10, MOST_SHARED = 256 << 10 };
enum emulated_wait { AT_NOTHING, AT_WARP, AT_BLOCK, AT_END };

__attribute__((aligned(1024))) unsigned char isamap_shared[MOST_SHARED];

static struct {
    ucontext_t back, thread[MOST_THREADS];
    char *stack[MOST_THREADS];
    emulated_wait wait[MOST_THREADS];
    unsigned me, threads;
    bool backwards; /* in which order the threads between two barriers run */
    void (*kernel)(const int64_t *);
    const int64_t *argument;
    uint32_t deposit[MOST_THREADS][16];
} emulated;

static void emulated_fail(const char *why) {
    fprintf(stderr, "emulated device: %s\n", why);
    abort();
}

static void emulated_stop(emulated_wait at) {
    unsigned me = emulated.me;
    emulated.wait[me] = at;
    swapcontext(&emulated.thread[me], &emulated.back);
}

static inline void __syncthreads() {
    emulated_stop(AT_BLOCK);
}

static inline void __syncwarp() {
    emulated_stop(AT_WARP);
}

static void emulated_begin() {
    emulated.kernel(emulated.argument);
    emulated_stop(AT_END);
}

/* All threads first … end stand at the same barrier: they may go on. */
static bool emulated_met(unsigned first, unsigned end, emulated_wait at) {
    for (unsigned t = first; t < end; t++)
        if (emulated.wait[t] != at) return false;
    for (unsigned t = first; t < end; t++) emulated.wait[t] = AT_NOTHING;
    return true;
}

static bool emulated_release() {
    bool some = emulated_met(0, emulated.threads, AT_BLOCK);
    for (unsigned w = 0; w < emulated.threads; w += WARP) {
        unsigned end = w + WARP < emulated.threads ? w + WARP : emulated.threads;
        some = emulated_met(w, end, AT_WARP) || some;
    }
    return some;
}

static void emulated_turn() {
    for (unsigned k = 0; k < emulated.threads; k++) {
        unsigned t = emulated.backwards ? emulated.threads - 1 - k : k;
        if (emulated.wait[t] != AT_NOTHING) continue;
        emulated.me = t;
        threadIdx = {t, 0, 0};
        swapcontext(&emulated.back, &emulated.thread[t]);
    }
    emulated.backwards = !emulated.backwards;
}

static void emulated_block() {
    for (unsigned t = 0; t < emulated.threads; t++) {
        if (!emulated.stack[t]) emulated.stack[t] = (char *)malloc(STACK);
        getcontext(&emulated.thread[t]);
        emulated.thread[t].uc_stack.ss_sp = emulated.stack[t];
        emulated.thread[t].uc_stack.ss_size = STACK;
        emulated.thread[t].uc_link = nullptr;
        makecontext(&emulated.thread[t], emulated_begin, 0);
        emulated.wait[t] = AT_NOTHING;
    }
    memset(isamap_shared, 0xff, sizeof isamap_shared);
    do emulated_turn();
    while (emulated_release());
    for (unsigned t = 0; t < emulated.threads; t++)
        if (emulated.wait[t] != AT_END) emulated_fail("not all threads reach a barrier");
}

/* `kernel` takes its arguments, 8 bytes each, from an array. */
extern "C" void emulated_launch(void (*kernel)(const int64_t *), unsigned x, unsigned y,
                                unsigned z, unsigned threads, unsigned shared, const int64_t *argument) {
    if (threads > MOST_THREADS || shared > MOST_SHARED) emulated_fail("too large a block");
    emulated.kernel = kernel;
    emulated.argument = argument;
    emulated.threads = threads;
    gridDim = {x, y, z};
    blockDim = {threads, 1, 1};
    for (unsigned b = 0; b < x * y * z; b++) {
        blockIdx = {b % x, b / x % y, b / x / y};
        emulated_block();
    }
}

/* ---- asm ---- */
struct emulated_operand {
    uint32_t *out; /* NULL: only read */
    uint32_t in;
};

template <class T> static emulated_operand emulated_out(T &x) {
    static_assert(sizeof x == 4, "an operand of 4 bytes");
    emulated_operand o = {(uint32_t *)&x, 0};
    memcpy(&o.in, &x, 4);
    return o;
}

template <class T> static emulated_operand emulated_in(T x) {
    static_assert(sizeof x == 4, "an operand of 4 bytes");
    emulated_operand o = {nullptr, 0};
    memcpy(&o.in, &x, 4);
    return o;
}

static float emulated_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* Element e of the register: of type "bf16", "f16" or "s8". */
static float emulated_element(const char *type, uint32_t bits, unsigned e) {
    if (!strcmp(type, "s8")) return (float)(int8_t)(bits >> 8 * e);
    uint32_t half = bits >> 16 * e & 0xffff;
    if (!strcmp(type, "bf16")) return emulated_float(half << 16);
    uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
    float x = exponent == 0    ? ldexpf((float)fraction, -24)
              : exponent == 31 ? (fraction ? NAN : INFINITY)
                               : ldexpf((float)(fraction + 1024), (int)exponent - 25);
    return half >> 15 ? -x : x;
}

/* PTX manual, "Matrix Fragments for mma.m16n8k16" and "… m16n8k32": registers of A are (row, column) = (g, low), (g + 8, low), (g, high),
 * (g + 8, high), those of B (low, g), (high, g), those of C rows g, g, g + 8, g + 8 and two neighbouring columns. */
static void emulated_mma(unsigned k, const char *type, emulated_operand *o) {
    uint32_t *mine = emulated.deposit[emulated.me];
    unsigned first = emulated.me / WARP * WARP, lane = emulated.me % WARP, each = k == 16 ? 2 : 4;
    for (int r = 0; r < 6; r++) mine[r] = o[4 + r].in;
    __syncwarp();
    for (unsigned c = 0; c < 4; c++) {
        unsigned row = lane / 4 + c / 2 * 8, column = lane % 4 * 2 + c % 2;
        float sum = emulated_float(o[c].in);
        int32_t whole;
        memcpy(&whole, &o[c].in, 4);
        for (unsigned x = 0; x < k; x++) {
            unsigned high = x / (k / 2), group = x % (k / 2) / each, e = x % each;
            const uint32_t *a = emulated.deposit[first + row % 8 * 4 + group];
            const uint32_t *b = emulated.deposit[first + column * 4 + group];
            float product = emulated_element(type, a[high * 2 + row / 8], e) *
                            emulated_element(type, b[4 + high], e);
            sum += product;
            whole += (int32_t)product;
        }
        if (!strcmp(type, "s8"))
            memcpy(o[c].out, &whole, 4);
        else
            memcpy(o[c].out, &sum, 4);
    }
    __syncwarp();
}

template <class... T> static void emulated_asm(const char *text, T... operand) {
    emulated_operand o[] = {operand...};
    unsigned k;
    char d[8], a[8], b[8], c[8];
    if (sscanf(text, "mma.sync.aligned.m16n8k%u.row.col.%7[^.].%7[^.].%7[^.].%7s", &k, d, a, b,
               c) != 5 ||
        strcmp(a, b) || strcmp(c, d) || (k != 16 && k != 32))
        emulated_fail(text);
    emulated_mma(k, a, o);
}
