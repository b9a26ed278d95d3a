// The C library around the verilated model (vdla.h).
#include "vdla.h"

#include "Vvdla.h"
#include "Vvdla__Dpi.h"
#include "verilated.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <vector>

struct vdla {
    VerilatedContext context;
    std::unique_ptr<Vvdla> model;
    uint8_t *dram = nullptr;
    int64_t bytes = 0;
    uint32_t rate = 8, low = 60, high = 60;
    uint64_t seed = 1, cycles = 0, outside = 0;
    bool touched_outside = false;
    std::vector<vdla_retired> retired;

    uint8_t *at(uint64_t address, uint64_t n) {
        if (address <= (uint64_t)bytes && n <= (uint64_t)bytes - address) return dram + address;
        if (!touched_outside) outside = address;
        touched_outside = true;
        return nullptr;
    }
    ~vdla() {
        if (dram) munmap(dram, (size_t)bytes);
    }
};

static vdla *self(unsigned long long handle) { return reinterpret_cast<vdla *>(handle); }

void vdla_dpi_fetch(unsigned long long handle, unsigned long long address, svBitVecVal *data) {
    const uint8_t *from = self(handle)->at(address, 16);
    if (from)
        memcpy(data, from, 16);
    else
        memset(data, 0, 16);
}

void vdla_dpi_read(unsigned long long handle, unsigned address, unsigned bytes, svBitVecVal *data) {
    const uint8_t *from = self(handle)->at(address, bytes);
    if (from)
        memcpy(data, from, bytes);
    else
        memset(data, 0, bytes);
}

void vdla_dpi_write(unsigned long long handle, unsigned address, unsigned bytes, const svBitVecVal *data) {
    uint8_t *to = self(handle)->at(address, bytes);
    if (to) memcpy(to, data, bytes);
}

void vdla_dpi_retire(unsigned long long handle, unsigned queue, unsigned number, unsigned long long start, unsigned long long finish) {
    self(handle)->retired.push_back({(int)queue, number, start, finish});
}

double sc_time_stamp() { return 0; }

struct vdla *vdla_open(int64_t dram_bytes) {
    auto *v = new (std::nothrow) vdla;
    if (!v || dram_bytes < 1) return delete v, nullptr;
    void *at = mmap(nullptr, (size_t)dram_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return delete v, nullptr;
    v->dram = static_cast<uint8_t *>(at);
    v->bytes = dram_bytes;
    v->context.randReset(2); // of a model built with VDLA_CHECKS; other models begin with zeros
    v->context.randSeed(1);
    v->model.reset(new Vvdla(&v->context));
    return v;
}

void vdla_close(struct vdla *v) { delete v; }
uint8_t *vdla_dram(struct vdla *v) { return v->dram; }

int vdla_set(struct vdla *v, uint32_t rate, uint32_t low, uint32_t high, uint64_t seed) {
    if (rate < 1 || rate > 64 || low < 8 || high < low || high > 1000) return 0;
    v->rate = rate;
    v->low = low;
    v->high = high;
    v->seed = seed ? seed : 1;
    return 1;
}

static void cycle(Vvdla &m) {
    m.clk = 1;
    m.eval();
    m.clk = 0;
    m.eval();
}

// What the buffers on the chip hold stays.
static void reset(vdla &v, uint64_t address, uint32_t instructions) {
    Vvdla &m = *v.model;
    m.clk = 0;
    m.reset = 1;
    m.set_handle = reinterpret_cast<uint64_t>(&v);
    m.set_program = address;
    m.set_length = instructions;
    m.set_rate = v.rate;
    m.set_low = v.low;
    m.set_high = v.high;
    m.seed = v.seed;
    m.eval();
    for (int k = 0; k < 4; k++) cycle(m); // twice for the reset itself
    v.retired.clear();
    v.touched_outside = false;
    m.reset = 0;
    m.eval();
}

static void say_waiting(const Vvdla &m, char *what, size_t n) {
    static const char *const token[] = {"l2c", "c2l", "c2s", "s2c"};
    static const char *const queue[] = {"load", "exec", "store"};
    static const int of[] = {1, 0, 2, 1};
    size_t used = (size_t)snprintf(what, n, "deadlock:");
    for (int t = 0; t < 4; t++)
        if ((m.missing >> t & 1) && used < n)
            used += (size_t)snprintf(what + used, n - used, "%s queue '%s' waits at instruction %u for '%s'", used > 9 ? ";" : "",
                                     queue[of[t]], m.waiting[of[t]], token[t]);
}

static void say_fault(const vdla &v, const Vvdla &m, char *what, size_t n) {
    if (v.touched_outside)
        snprintf(what, n, "an address outside DRAM: 0x%llx of 0x%llx bytes", (unsigned long long)v.outside, (unsigned long long)v.bytes);
    else
        snprintf(what, n, "%s",
                 m.fault & 1   ? "an instruction that does not exist"
                 : m.fault & 2 ? "a token counter overflowed"
                 : m.fault & 4 ? "an address behind the end of a buffer"
                               : "too many copies under way");
}

enum vdla_end vdla_run(struct vdla *v, uint64_t address, uint32_t instructions, uint64_t limit, char *what, size_t n) {
    char none[2];
    if (!what) what = none, n = sizeof none;
    *what = 0;
    reset(*v, address, instructions);
    Vvdla &m = *v->model;
    enum vdla_end end = VDLA_LIMIT;
    for (uint64_t k = 0; k <= limit + 1 && end == VDLA_LIMIT; k++) {
        cycle(m);
        if (m.fault || v->touched_outside)
            end = VDLA_FAULT;
        else if (m.done)
            end = VDLA_DONE;
        else if (m.stuck)
            end = VDLA_DEADLOCK;
    }
    v->cycles = m.now;
    if (end == VDLA_DEADLOCK) say_waiting(m, what, n);
    if (end == VDLA_FAULT) say_fault(*v, m, what, n);
    if (end == VDLA_LIMIT) snprintf(what, n, "still running after %llu cycles", (unsigned long long)limit);
    return end;
}

uint64_t vdla_cycles(const struct vdla *v) { return v->cycles; }
uint64_t vdla_count(const struct vdla *v, enum vdla_counter c) { return c < VDLA_COUNTERS ? v->model->counter[c] : 0; }

const struct vdla_retired *vdla_retired_list(const struct vdla *v, size_t *n) {
    *n = v->retired.size();
    return v->retired.data();
}
