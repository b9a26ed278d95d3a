/* CUDA C on the host, for tests: each thread of a block is a context of its own, threads meet at barriers, and what stands in asm is done
 * here as the PTX manual says. The text of a kernel is compiled as C++ after this file; asm statements have become emulated_asm calls
 * (nvrtc.c). A barrier that not all threads reach ends the process. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>
#include <math.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __shared__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

struct emulated_three {
    unsigned x, y, z;
};
static emulated_three threadIdx, blockIdx, blockDim, gridDim;

enum { WARP = 32, MOST_THREADS = 1024, STACK = 256 << 10, MOST_SHARED = 256 << 10, MOST_COPIES = 1024, MOST_BARRIERS = 256 };
enum emulated_wait { AT_NOTHING, AT_LOOK, AT_WARP, AT_BLOCK, AT_NUMBERED, AT_END };

__attribute__((aligned(1024))) unsigned char isamap_shared[MOST_SHARED];

static struct {
    ucontext_t back, thread[MOST_THREADS];
    char *stack[MOST_THREADS];
    emulated_wait wait[MOST_THREADS];
    unsigned place[MOST_THREADS];           /* in the text, of the barrier of all threads */
    unsigned number[MOST_THREADS], count[MOST_THREADS]; /* of a barrier with a number */
    unsigned me, threads;
    bool backwards; /* in which order the threads between two barriers run */
    void (*kernel)(const int64_t *);
    const int64_t *argument;
    uint32_t deposit[MOST_THREADS][16];
    struct {
        unsigned char *to;
        const unsigned char *from;
    } copy[MOST_THREADS][MOST_COPIES]; /* under way */
    unsigned ncopies[MOST_THREADS];
    uint64_t barrier[MOST_BARRIERS];
    unsigned nbarriers;
    /* What others copied is visible to wgmma; what is in registers may be its sums. */
    bool visible[MOST_THREADS], fenced[MOST_THREADS];
    unsigned registers[MOST_THREADS]; /* that it has asked for; 0: those that it began with */
    bool moved; /* some thread did more than look at a barrier in vain */
} emulated;

[[noreturn]] static void emulated_fail(const char *why) {
    fprintf(stderr, "emulated device: %s\n", why);
    abort();
}

static void emulated_stop(emulated_wait at) {
    unsigned me = emulated.me;
    emulated.wait[me] = at;
    swapcontext(&emulated.thread[me], &emulated.back);
}

/* A thread that waits at a barrier in memory is AT_LOOK: it looks again when the others have run. */
static inline void emulated_syncthreads(unsigned place) {
    emulated.place[emulated.me] = place;
    emulated_stop(AT_BLOCK);
}
#define __syncthreads() emulated_syncthreads(__COUNTER__)

static inline void emulated_bar_sync(unsigned number, unsigned count) {
    if (number > 15 || count % WARP || count > emulated.threads) emulated_fail("a wrong barrier");
    emulated.number[emulated.me] = number;
    emulated.count[emulated.me] = count;
    emulated_stop(AT_NUMBERED);
}

static inline void __syncwarp() {
    emulated_stop(AT_WARP);
}

/* The value of the lane whose number differs in these bits. */
static inline float __shfl_xor_sync(uint32_t, float x, unsigned far) {
    float y;
    memcpy(&emulated.deposit[emulated.me][0], &x, sizeof x);
    emulated_stop(AT_WARP);
    memcpy(&y, &emulated.deposit[emulated.me ^ far][0], sizeof y);
    emulated_stop(AT_WARP);
    return y;
}

struct alignas(16) float4 {
    float x, y, z, w;
};

static inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}

static inline float __fdiv_rn(float x, float y) {
    return x / y;
}

static inline float __fsqrt_rn(float x) {
    return sqrtf(x);
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

/* So many threads as are counted stand at a barrier with this number, wherever in the text. */
static bool emulated_numbered(unsigned number) {
    unsigned n = 0, count = 0;
    for (unsigned t = 0; t < emulated.threads; t++) {
        if (emulated.wait[t] != AT_NUMBERED || emulated.number[t] != number) continue;
        if (n++ && count != emulated.count[t]) emulated_fail("a barrier is counted in two ways");
        count = emulated.count[t];
    }
    if (!n || n < count) return false;
    if (n > count) emulated_fail("too many threads at a barrier");
    for (unsigned t = 0; t < emulated.threads; t++)
        if (emulated.wait[t] == AT_NUMBERED && emulated.number[t] == number) emulated.wait[t] = AT_NOTHING;
    return true;
}

/* The barrier of all threads is for a place that all of them reach (compute-sanitizer's synccheck). */
static void emulated_one_place() {
    for (unsigned t = 1; t < emulated.threads; t++)
        if (emulated.wait[t] != AT_BLOCK) return;
        else if (emulated.place[t] != emulated.place[0]) emulated_fail("__syncthreads in divergent code");
}

static bool emulated_release() {
    emulated_one_place();
    bool some = emulated_met(0, emulated.threads, AT_BLOCK);
    for (unsigned number = 0; number < 16; number++) some = emulated_numbered(number) || some;
    for (unsigned w = 0; w < emulated.threads; w += WARP) {
        unsigned end = w + WARP < emulated.threads ? w + WARP : emulated.threads;
        some = emulated_met(w, end, AT_WARP) || some;
    }
    return some;
}

static void emulated_turn() {
    for (unsigned k = 0; k < emulated.threads; k++) {
        unsigned t = emulated.backwards ? emulated.threads - 1 - k : k;
        bool looked = emulated.wait[t] == AT_LOOK;
        if (emulated.wait[t] != AT_NOTHING && !looked) continue;
        emulated.wait[t] = AT_NOTHING;
        emulated.me = t;
        threadIdx = {t, 0, 0};
        swapcontext(&emulated.back, &emulated.thread[t]);
        emulated.moved = emulated.moved || !looked;
    }
    emulated.backwards = !emulated.backwards;
}

static void emulated_end_barriers();

/* Groups of four warps ask for registers together, and of more than a multiprocessor has the last ones never come. */
static void emulated_end_registers() {
    unsigned all = 0;
    for (unsigned t = 0; t < emulated.threads; t++) {
        unsigned first = t / (4 * WARP) * (4 * WARP);
        if (emulated.registers[t] != emulated.registers[first]) emulated_fail("a part of a group of warps asks for registers");
        all += emulated.registers[t];
    }
    if (all > 65536) emulated_fail("more registers are asked for than there are");
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
        emulated.ncopies[t] = 0;
        emulated.visible[t] = true;
        emulated.fenced[t] = false;
        emulated.registers[t] = 0;
    }
    memset(isamap_shared, 0xff, sizeof isamap_shared);
    bool more;
    do {
        emulated.moved = false;
        emulated_turn();
        more = emulated_release() || emulated.moved;
    } while (more);
    for (unsigned t = 0; t < emulated.threads; t++)
        if (emulated.wait[t] != AT_END) emulated_fail("not all threads reach a barrier");
    emulated_end_barriers();
    emulated_end_registers();
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

/* Argument k of a kernel, of which each takes so many words. */
template <class T> static std::remove_const_t<T> emulated_argument(const int64_t *a, const int *words, int k) {
    std::remove_const_t<T> x;
    for (int i = 0; i < k; i++) a += words[i];
    memcpy(&x, a, sizeof x);
    return x;
}

static size_t __cvta_generic_to_shared(const void *p) {
    return (size_t)((const unsigned char *)p - isamap_shared);
}

/* ---- asm ---- */
struct emulated_operand {
    void *out; /* NULL: only read */
    uint64_t in;
};

template <class T> static emulated_operand emulated_out(T &x) {
    emulated_operand o = {&x, 0};
    memcpy(&o.in, &x, sizeof x);
    return o;
}

template <class T> static emulated_operand emulated_in(T x) {
    emulated_operand o = {nullptr, 0};
    memcpy(&o.in, &x, sizeof x);
    return o;
}

static float emulated_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* Of type "s8" or "u8". */
static bool emulated_byte(const char *type) {
    return !strcmp(type + 1, "8");
}

/* Element e of the register: of type "bf16", "f16", "s8" or "u8". */
static float emulated_element(const char *type, uint32_t bits, unsigned e) {
    if (!strcmp(type, "s8")) return (float)(int8_t)(bits >> 8 * e);
    if (!strcmp(type, "u8")) return (float)(uint8_t)(bits >> 8 * e);
    uint32_t half = bits >> 16 * e & 0xffff;
    if (!strcmp(type, "bf16")) return emulated_float(half << 16);
    uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
    float x = exponent == 0    ? ldexpf((float)fraction, -24)
              : exponent == 31 ? (fraction ? NAN : INFINITY)
                               : ldexpf((float)(fraction + 1024), (int)exponent - 25);
    return half >> 15 ? -x : x;
}

/* A sum of products, of floats or of integers; `c` says which. */
struct emulated_sum {
    float real;
    int32_t whole;
    emulated_operand *c;
    explicit emulated_sum(emulated_operand *c) : real(emulated_float((uint32_t)c->in)), whole((int32_t)c->in), c(c) {}
    void add(float product) {
        real += product;
        whole += (int32_t)product;
    }
    void write(bool integer) {
        if (integer)
            memcpy(c->out, &whole, 4);
        else
            memcpy(c->out, &real, 4);
    }
};

/* PTX manual, "Matrix Fragments for mma.m16n8k16" and "… m16n8k32": registers of A are (row, column) = (g, low), (g + 8, low), (g, high),
 * (g + 8, high), those of B (low, g), (high, g), those of C rows g, g, g + 8, g + 8 and two neighbouring columns. */
static void emulated_mma(unsigned k, const char *ta, const char *tb, emulated_operand *o) {
    uint32_t *mine = emulated.deposit[emulated.me];
    unsigned first = emulated.me / WARP * WARP, lane = emulated.me % WARP, each = k == 16 ? 2 : 4;
    for (int r = 0; r < 6; r++) mine[r] = (uint32_t)o[4 + r].in;
    __syncwarp();
    for (unsigned c = 0; c < 4; c++) {
        unsigned row = lane / 4 + c / 2 * 8, column = lane % 4 * 2 + c % 2;
        emulated_sum sum(&o[c]);
        for (unsigned x = 0; x < k; x++) {
            unsigned high = x / (k / 2), group = x % (k / 2) / each, e = x % each;
            const uint32_t *a = emulated.deposit[first + row % 8 * 4 + group];
            const uint32_t *b = emulated.deposit[first + column * 4 + group];
            sum.add(emulated_element(ta, a[high * 2 + row / 8], e) *
                    emulated_element(tb, b[4 + high], e));
        }
        sum.write(emulated_byte(ta));
    }
    __syncwarp();
}

static unsigned char *emulated_shared(uint64_t at, unsigned bytes) {
    if (at + bytes > MOST_SHARED || at % bytes) emulated_fail("a wrong address of shared memory");
    return isamap_shared + at;
}

/* "ldmatrix": lanes 8q … 8q+7 give the addresses of the rows of matrix q, each of 16 bytes; lane l gets 4 bytes of row l/4; transposed,
 * elements l%4*2 and l%4*2+1 of column l/4, of two bytes each. */
static void emulated_ldmatrix(bool transposed, emulated_operand *o) {
    unsigned first = emulated.me / WARP * WARP, lane = emulated.me % WARP;
    emulated.deposit[emulated.me][0] = (uint32_t)o[4].in;
    __syncwarp();
    for (unsigned q = 0; q < 4; q++) {
        uint16_t pair[2];
        for (unsigned e = 0; e < 2; e++) {
            unsigned row = transposed ? lane % 4 * 2 + e : lane / 4,
                     column = transposed ? lane / 4 : lane % 4 * 2 + e;
            memcpy(&pair[e], emulated_shared(emulated.deposit[first + 8 * q + row][0], 16) + 2 * column, 2);
        }
        memcpy(o[q].out, pair, 4);
    }
    __syncwarp();
}

/* A barrier in shared memory: arrivals that are expected, those that are missing, how often it was passed, and how often somebody has
 * seen that. A second time before anybody has seen the first is a token that is lost: so is one that nobody waits for (a kernel's end). */
struct emulated_barrier {
    uint16_t expected, missing, phase, seen;
};

/* Of each barrier: bytes that are expected in this phase, and copies of boxes under way. */
struct emulated_map { /* as driver.c writes it */
    uint64_t mark, base, dim[2], pitch;
    uint32_t size, box[2], swizzle;
};
struct emulated_box {
    const emulated_map *map;
    uint64_t to;
    int32_t at[2];
};
static int64_t emulated_bytes[MOST_SHARED / 8];
static bool emulated_threads[MOST_SHARED / 8]; /* threads themselves copied before it: not yet visible to wgmma */
static std::vector<emulated_box> emulated_boxes[MOST_SHARED / 8];

static void emulated_begin_barrier(uint64_t at, unsigned arrivals) {
    *(emulated_barrier *)emulated_shared(at, 8) = {(uint16_t)arrivals, (uint16_t)arrivals, 0, 0};
    emulated_threads[at / 8] = false;
    for (unsigned k = 0; k < emulated.nbarriers; k++)
        if (emulated.barrier[k] == at) return;
    if (emulated.nbarriers == MOST_BARRIERS) emulated_fail("too many barriers");
    emulated.barrier[emulated.nbarriers++] = at;
}

static void emulated_pass(uint64_t at) {
    emulated_barrier *b = (emulated_barrier *)emulated_shared(at, 8);
    if (b->missing || emulated_bytes[at / 8]) return;
    if (!emulated_boxes[at / 8].empty()) emulated_fail("a barrier is passed while copies to it are under way");
    b->missing = b->expected;
    b->phase++;
    if ((uint16_t)(b->phase - b->seen) > 1) emulated_fail("a barrier is passed again before anybody has seen that");
}

static void emulated_arrive(uint64_t at) {
    emulated_barrier *b = (emulated_barrier *)emulated_shared(at, 8);
    if (!b->missing) emulated_fail("too many arrive at a barrier");
    b->missing--;
    emulated_pass(at);
}

/* A box of the array that the map names, zeros beyond its edges; pieces of 16 bytes change places by the number of the row. */
static void emulated_write_box(const emulated_box *x) {
    const emulated_map *m = x->map;
    uint64_t row = m->box[0] * m->size, span = UINT64_C(16) << m->swizzle;
    if (m->swizzle && row != span) emulated_fail("a box whose rows are shorter than the swizzle");
    for (uint32_t r = 0; r < m->box[1]; r++)
        for (uint64_t e = 0; e < m->box[0]; e++) {
            int64_t c = x->at[0] + (int64_t)e, i = x->at[1] + (int64_t)r;
            uint64_t to = x->to + r * row + e * m->size;
            if (m->swizzle) to ^= to >> 3 & (span - 16);
            bool inside = c >= 0 && i >= 0 && c < (int64_t)m->dim[0] && i < (int64_t)m->dim[1];
            if (inside)
                memcpy(emulated_shared(to, m->size), (const unsigned char *)m->base + i * m->pitch + c * m->size, m->size);
            else
                memset(emulated_shared(to, m->size), 0, m->size);
        }
}

/* They are made as late as they may be: when somebody waits for nothing but them. */
static void emulated_finish_boxes(uint64_t at) {
    emulated_barrier *b = (emulated_barrier *)emulated_shared(at, 8);
    if (b->missing || emulated_boxes[at / 8].empty()) return;
    for (const emulated_box &x : emulated_boxes[at / 8]) {
        emulated_write_box(&x);
        emulated_bytes[at / 8] -= (int64_t)x.map->box[0] * x.map->box[1] * x.map->size;
    }
    emulated_boxes[at / 8].clear();
    if (emulated_bytes[at / 8] < 0) emulated_fail("more bytes come to a barrier than it expects");
    if (emulated_bytes[at / 8] > 0) emulated_fail("a barrier expects more bytes than come");
    emulated_pass(at);
}

static void emulated_tensor(emulated_operand *o) {
    emulated_box x = {(const emulated_map *)o[1].in, o[0].in, {(int32_t)o[2].in, (int32_t)o[3].in}};
    if ((uint64_t)x.map % 64 || x.map->mark != 0x54454e534f52) emulated_fail("no tensor map");
    if (x.to % (x.map->swizzle ? UINT64_C(128) << x.map->swizzle : 128)) emulated_fail("a box at a wrong address of shared memory");
    if (o[4].in % 8) emulated_fail("a wrong address of shared memory");
    emulated_boxes[o[4].in / 8].push_back(x);
}

static void emulated_expect(uint64_t at, uint32_t bytes) {
    emulated_barrier *b = (emulated_barrier *)emulated_shared(at, 8);
    if (!b->missing) emulated_fail("bytes are expected when all have arrived");
    emulated_bytes[at / 8] += bytes;
}

static void emulated_end_barriers() {
    for (unsigned k = 0; k < emulated.nbarriers; k++) {
        const emulated_barrier *b = (const emulated_barrier *)emulated_shared(emulated.barrier[k], 8);
        if (b->phase != b->seen || b->missing != b->expected)
            emulated_fail("a kernel leaves a token behind");
        if (emulated_bytes[emulated.barrier[k] / 8] || !emulated_boxes[emulated.barrier[k] / 8].empty())
            emulated_fail("a kernel leaves copies behind");
    }
    emulated.nbarriers = 0;
}

/* Copies are made as late as they may be: when the thread's arrival behind them is. */
static void emulated_cp(emulated_operand *o, unsigned bytes) {
    unsigned n = emulated.ncopies[emulated.me]++;
    if (n >= MOST_COPIES) emulated_fail("too many copies under way");
    if (o[1].in % bytes) emulated_fail("a wrong address of a copy");
    emulated.copy[emulated.me][n] = {emulated_shared(o[0].in, bytes), (const unsigned char *)o[1].in};
}

static void emulated_copied(uint64_t at) {
    for (unsigned k = 0; k < emulated.ncopies[emulated.me]; k++)
        memcpy(emulated.copy[emulated.me][k].to, emulated.copy[emulated.me][k].from, 16);
    emulated.ncopies[emulated.me] = 0;
    emulated_threads[at / 8] = true;
    emulated_arrive(at);
}

static void emulated_test_wait(emulated_operand *o) {
    emulated_barrier *b = (emulated_barrier *)emulated_shared(o[1].in, 8);
    emulated_finish_boxes(o[1].in);
    uint32_t done = (b->phase & 1) != (uint32_t)o[2].in;
    memcpy(o[0].out, &done, 4);
    emulated.moved = emulated.moved || done;
    if (done) b->seen = b->phase;
    if (done && emulated_threads[o[1].in / 8]) emulated.visible[emulated.me] = false;
    if (!done) emulated_stop(AT_LOOK);
}

/* Element (i, x) of a matrix that a descriptor names. Without swizzle it is squares of 8 rows of 16 bytes, `lead` and `stride` bytes from one
 * to the next along K and along the rows; 16 bytes lie along K, or, transposed, along i. With the swizzle of 128 bytes it is groups of eight such
 * rows, `stride` bytes apart: along i, or, transposed, along K, where the next 128 bytes of i lie `lead` bytes on. */
static float emulated_described(uint64_t descriptor, const char *type, bool transposed, unsigned i, unsigned x) {
    unsigned size = emulated_byte(type) ? 1 : 2, swizzled = descriptor >> 62, row = swizzled ? 128 : 16, each = row / size;
    uint64_t lead = (descriptor >> 16 & 0x3fff) << 4, stride = (descriptor >> 32 & 0x3fff) << 4, at = (descriptor & 0x3fff) << 4;
    unsigned across = transposed ? i : x, along = transposed ? x : i;
    if (swizzled > 1) emulated_fail("a descriptor with another swizzle than that of 128 bytes");
    if (swizzled && !transposed && at % 128 + (x + 1) * size > 128) emulated_fail("a row of more than 128 bytes");
    at += along % 8 * row + across % each * size;
    at += swizzled ? along / 8 * stride + across / each * lead : x / each * lead + i / 8 * stride;
    if (swizzled) at ^= at >> 3 & 0x70;
    uint32_t bits = 0;
    memcpy(&bits, emulated_shared(at, size), size);
    return emulated_element(type, bits, 0);
}

/* PTX manual, "Register Fragments for wgmma.mma_async.m64nNk16", matrix D: registers 4q … 4q+3 are columns 8q + l%4*2 and the next one of
 * rows l/4 and l/4 + 8 of the warp's sixteen. It is done as late as it may be: when the thread waits for it. */
static void emulated_wgmma(unsigned n, unsigned k, const char *ta, const char *tb, bool transposed,
                           emulated_operand *o) {
    unsigned lane = emulated.me % WARP, first = emulated.me / WARP % 4 * 16 + lane / 4;
    const emulated_operand *in = o + n / 2;
    for (unsigned r = 0; r < n / 2; r++) {
        unsigned i = first + r / 2 % 2 * 8, j = r / 4 * 8 + lane % 4 * 2 + r % 2;
        if (!in[2].in) o[r].in = 0;
        emulated_sum sum(&o[r]);
        for (unsigned x = 0; x < k; x++)
            sum.add(emulated_described(in[0].in, ta, false, i, x) *
                    emulated_described(in[1].in, tb, transposed, j, x));
        sum.write(emulated_byte(ta));
    }
}

struct emulated_late {
    unsigned n, k;
    char a[8], b[8];
    bool transposed;
    std::vector<emulated_operand> operand;
};
static std::vector<emulated_late> emulated_pending[MOST_THREADS];

static void emulated_later(unsigned n, unsigned k, const char *a, const char *b, bool transposed,
                           const emulated_operand *o) {
    unsigned me = emulated.me;
    if (!emulated.visible[me]) emulated_fail("wgmma reads copies that no fence has made visible");
    if (!emulated.fenced[me]) emulated_fail("wgmma without a fence before it");
    emulated_late x = {n, k, "", "", transposed, std::vector<emulated_operand>(o, o + n / 2 + 3)};
    strcpy(x.a, a);
    strcpy(x.b, b);
    emulated_pending[me].push_back(x);
}

/* Its sums are what they are now. */
static void emulated_finish() {
    unsigned me = emulated.me;
    emulated.fenced[me] = false;
    for (emulated_late &x : emulated_pending[me]) {
        for (unsigned r = 0; r < x.n / 2; r++) memcpy(&x.operand[r].in, x.operand[r].out, 4);
        emulated_wgmma(x.n, x.k, x.a, x.b, x.transposed, x.operand.data());
    }
    emulated_pending[me].clear();
}

/* Two floats as a pair of shorter ones, rounded to nearest even: the first operand is the upper one. */
static void emulated_narrow(bool bf16, emulated_operand *o) {
    uint32_t pair = 0;
    for (int k = 0; k < 2; k++) {
        uint32_t bits = (uint32_t)o[1 + k].in, half;
        if (bf16) {
            half = (bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        } else {
            _Float16 h = (_Float16)emulated_float(bits);
            uint16_t bytes;
            memcpy(&bytes, &h, 2);
            half = bytes;
        }
        pair |= half << (k ? 0 : 16);
    }
    memcpy(o[0].out, &pair, 4);
}

static void emulated_store(emulated_operand *o) {
    if (o[0].in % 8) emulated_fail("a wrong address of a store");
    for (int k = 0; k < 2; k++) memcpy((unsigned char *)o[0].in + 4 * k, &o[1 + k].in, 4);
}

static bool emulated_alike(const char *a, const char *b) {
    return !strcmp(a, b) || (emulated_byte(a) && emulated_byte(b));
}

template <class... T> static void emulated_asm(const char *text, T... operand) {
    emulated_operand o[] = {operand..., {nullptr, 0}};
    unsigned k, n;
    char d[8], a[8], b[8], c[8];
    auto is = [text](const char *name) { return strstr(text, name) != nullptr; };
    const char *wgmma = strstr(text, "wgmma.mma_async.");
    if (!*text || is("wgmma.commit_group.sync.aligned;")) return;
    if (sscanf(text, "bar.sync %u, %u;", &k, &n) == 2)
        emulated_bar_sync(k, n);
    else if (is("wgmma.fence.sync.aligned;"))
        emulated.fenced[emulated.me] = true;
    else if (is("fence.proxy.async;") || is("fence.proxy.async.shared::cta;"))
        emulated.visible[emulated.me] = true;
    else if (sscanf(text, "setmaxnreg.%3[a-z].sync.aligned.u32 %u;", d, &n) == 2 && n >= 24 && n <= 256 && n % 8 == 0)
        emulated.registers[emulated.me] = n;
    else if (is("wgmma.wait_group.sync.aligned 0;"))
        emulated_finish();
    else if (wgmma && sscanf(wgmma, "wgmma.mma_async.sync.aligned.m64n%uk%u.%7[^.].%7[^.].%7s", &n, &k, d, a, b) == 5 && emulated_alike(a, b))
        emulated_later(n, k, a, b, is(", p,1,1,0,1;"), o);
    else if (sscanf(text, "mma.sync.aligned.m16n8k%u.row.col.%7[^.].%7[^.].%7[^.].%7s", &k, d, a, b, c) == 5 &&
        emulated_alike(a, b) && !strcmp(c, d) && (k == 16 || k == 32))
        emulated_mma(k, a, b, o);
    else if (is("ldmatrix.sync.aligned.m8n8.x4.shared.b16 ") || is("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 "))
        emulated_ldmatrix(is(".trans."), o);
    else if (is("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"))
        emulated_tensor(o);
    else if (is("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 "))
        emulated_expect(o[0].in, (uint32_t)o[1].in);
    else if (is("st.global.v2.b32 [%0], {%1, %2};"))
        emulated_store(o);
    else if (is("mbarrier.init.shared.b64 "))
        emulated_begin_barrier(o[0].in, (unsigned)o[1].in);
    else if (is("cp.async.mbarrier.arrive.noinc.shared.b64 "))
        emulated_copied(o[0].in);
    else if (is("mbarrier.arrive.shared.b64 "))
        emulated_arrive(o[1].in);
    else if (is("mbarrier.test_wait.parity.shared.b64 "))
        emulated_test_wait(o);
    else if (is("cvt.rn.bf16x2.f32 ") || is("cvt.rn.f16x2.f32 "))
        emulated_narrow(is("bf16x2"), o);
    else if (is("cp.async.cg.shared.global ") && is(", 16;"))
        emulated_cp(o, 16);
    else
        emulated_fail(text);
}
