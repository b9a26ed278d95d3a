// The accelerator as a device of isamap's runtime (backends/device.h). Launches follow one another: what the
// buffers on the chip hold stays, times and counters go on.
#include "backends/device.h"
#include "vdla.h"
#include "vdla_built.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace {

struct opened {
    struct vdla *chip = nullptr;
    int64_t used = 0;
    uint32_t rate = VDLA_BUILT_RATE, low = VDLA_BUILT_LAT, high = VDLA_BUILT_LAT;
    uint64_t seed = 1, address = 0, cycles = 0;
    uint32_t length = 0;
    uint64_t count[VDLA_COUNTERS] = {};
    std::vector<device_record> record;
    ~opened() {
        if (chip) vdla_close(chip);
    }
};

opened *self(void *d) { return static_cast<opened *>(d); }

const char *const queues[] = {"load", "exec", "store"};

// Parameters that the model was built with.
const struct {
    const char *name;
    int64_t value;
} built[] = {{"INP", VDLA_BUILT_INP}, {"WGT", VDLA_BUILT_WGT}, {"ACC", VDLA_BUILT_ACC}, {"UOP", VDLA_BUILT_UOP}};

bool set(opened *o, const device_setting &s, char *what) {
    for (auto &b : built)
        if (!strcmp(b.name, s.name)) {
            if (b.value == s.value) return true;
            snprintf(what, DEVICE_TEXT, "'%s' is %lld in this model, not %lld", s.name, (long long)b.value, (long long)s.value);
            return false;
        }
    if (s.value < 0 || s.value > UINT32_MAX) return snprintf(what, DEVICE_TEXT, "'%s' is %lld", s.name, (long long)s.value), false;
    auto v = static_cast<uint32_t>(s.value);
    if (!strcmp(s.name, "RATE"))
        o->rate = v;
    else if (!strcmp(s.name, "LAT"))
        o->low = o->high = v;
    else if (!strcmp(s.name, "latency.low"))
        o->low = v;
    else if (!strcmp(s.name, "latency.high"))
        o->high = v;
    else if (!strcmp(s.name, "latency.seed"))
        o->seed = v;
    else
        return snprintf(what, DEVICE_TEXT, "there is no parameter '%s'", s.name), false;
    return true;
}

void *device_open(const device_setting *setting, int n, char *what) {
    std::unique_ptr<opened> o(new (std::nothrow) opened);
    if (!o || !(o->chip = vdla_open(VDLA_BUILT_DRAM))) return snprintf(what, DEVICE_TEXT, "no memory"), nullptr;
    for (int k = 0; k < n; k++)
        if (!set(o.get(), setting[k], what)) return nullptr;
    if (vdla_set(o->chip, o->rate, o->low, o->high, o->seed)) return o.release();
    snprintf(what, DEVICE_TEXT, "rate %u and latency %u to %u, expected a rate of 1 to 64 and a latency of 8 to 1000", o->rate, o->low,
             o->high);
    return nullptr;
}

void device_close(void *d) { delete self(d); }

int64_t device_allocate(void *d, int64_t bytes, int64_t align) {
    opened *o = self(d);
    if (bytes < 0 || align < 1) return -1;
    int64_t at = (o->used + align - 1) / align * align;
    if (at > VDLA_BUILT_DRAM || bytes > VDLA_BUILT_DRAM - at) return -1;
    o->used = at + bytes;
    return at;
}

bool inside(int64_t address, int64_t bytes) {
    return address >= 0 && bytes >= 0 && address <= VDLA_BUILT_DRAM && bytes <= VDLA_BUILT_DRAM - address;
}

int device_write(void *d, int64_t address, const void *from, int64_t bytes) {
    if (!inside(address, bytes)) return 1;
    memcpy(vdla_dram(self(d)->chip) + address, from, (size_t)bytes);
    return 0;
}

int device_read(void *d, int64_t address, void *to, int64_t bytes) {
    if (!inside(address, bytes)) return 1;
    memcpy(to, vdla_dram(self(d)->chip) + address, (size_t)bytes);
    return 0;
}

// The registers are how many instructions there are, and where.
int device_launch(void *d, int64_t address, int64_t n, int64_t bytes, const device_register *reg, int nregs, char *what) {
    opened *o = self(d);
    uint64_t length = (uint64_t)n, base = (uint64_t)address;
    for (int k = 0; k < nregs; k++) {
        if (reg[k].address == 0x08)
            length = reg[k].value;
        else if (reg[k].address == 0x0c)
            base = reg[k].value;
        else
            return snprintf(what, DEVICE_TEXT, "there is no register 0x%llx", (unsigned long long)reg[k].address), 1;
    }
    if (n < 0 || n > UINT32_MAX || bytes != n * 16 || !inside(address, bytes) || length != (uint64_t)n || base != (uint64_t)address)
        return snprintf(what, DEVICE_TEXT, "%lld instructions in %lld bytes at %lld cannot be launched", (long long)n, (long long)bytes,
                        (long long)address),
               1;
    o->length = (uint32_t)n;
    o->address = base;
    return 0;
}

device_end device_wait(void *d, uint64_t cycles, char *what) {
    opened *o = self(d);
    vdla_end end = vdla_run(o->chip, o->address, o->length, cycles, what, DEVICE_TEXT);
    size_t n;
    const vdla_retired *r = vdla_retired_list(o->chip, &n);
    for (size_t k = 0; k < n; k++) o->record.push_back({queues[r[k].queue], r[k].number, o->cycles + r[k].start, o->cycles + r[k].end});
    for (int c = 0; c < VDLA_COUNTERS; c++) o->count[c] += vdla_count(o->chip, (vdla_counter)c);
    o->cycles += vdla_cycles(o->chip);
    return end == VDLA_DONE ? DEVICE_DONE : end == VDLA_DEADLOCK ? DEVICE_DEADLOCK : end == VDLA_LIMIT ? DEVICE_LIMIT : DEVICE_FAILED;
}

size_t device_counters(void *d, device_counter *out, size_t most) {
    const opened *o = self(d);
    const uint64_t *c = o->count;
    uint64_t all = c[VDLA_INSTRUCTIONS] + c[VDLA_INSTRUCTIONS + 1] + c[VDLA_INSTRUCTIONS + 2], read = 0;
    for (int k = 0; k < 4; k++) read += c[VDLA_READ_BYTES + k];
    const device_counter list[] = {
        {"cycles", o->cycles},
        {"instructions", all},
        {"instructions.load", c[VDLA_INSTRUCTIONS]},
        {"instructions.exec", c[VDLA_INSTRUCTIONS + 1]},
        {"instructions.store", c[VDLA_INSTRUCTIONS + 2]},
        {"busy.load", c[VDLA_BUSY]},
        {"busy.exec", c[VDLA_BUSY + 1]},
        {"busy.store", c[VDLA_BUSY + 2]},
        {"busy.gemm", c[VDLA_GEMM]},
        {"busy.alu", c[VDLA_ALU]},
        {"busy.port", c[VDLA_PORT]},
        {"wait.load", c[VDLA_PORT_WAIT] + c[VDLA_TOKEN_WAIT + 1]},
        {"wait.exec", c[VDLA_PORT_WAIT + 1] + c[VDLA_TOKEN_WAIT] + c[VDLA_TOKEN_WAIT + 3]},
        {"wait.store", c[VDLA_PORT_WAIT + 2] + c[VDLA_TOKEN_WAIT + 2]},
        {"wait.l2c", c[VDLA_TOKEN_WAIT]},
        {"wait.c2l", c[VDLA_TOKEN_WAIT + 1]},
        {"wait.c2s", c[VDLA_TOKEN_WAIT + 2]},
        {"wait.s2c", c[VDLA_TOKEN_WAIT + 3]},
        {"bytes.port", read + c[VDLA_STORED_BYTES]},
        {"read.dram", read},
        {"written.dram", c[VDLA_STORED_BYTES]},
        {"written.inp", c[VDLA_READ_BYTES]},
        {"written.wgt", c[VDLA_READ_BYTES + 1]},
        {"written.acc", c[VDLA_READ_BYTES + 2]},
        {"written.uop", c[VDLA_READ_BYTES + 3]},
    };
    const size_t n = sizeof list / sizeof *list;
    for (size_t k = 0; k < n && k < most; k++) out[k] = list[k];
    return n;
}

size_t device_records(void *d, device_record *out, size_t first, size_t most) {
    const opened *o = self(d);
    for (size_t k = 0; k < most && first + k < o->record.size(); k++) out[k] = o->record[first + k];
    return o->record.size();
}

const device table = {DEVICE_VERSION, "vdla",        device_open, device_close,    device_allocate, device_write,
                      device_read,    device_launch, device_wait, device_counters, device_records};

} // namespace

extern "C" __attribute__((visibility("default"))) const struct device *isamap_device(void) { return &table; }
