/* What this CPU can do, from CPUID, and what the operating system lets it do, from XCR0. */
#include "machines/machine.h"
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

enum { STATE_YMM = 0x6, STATE_ZMM = 0xe6, STATE_TILE = 0x60000 };

/* Register state that must be enabled for the instructions behind a CPUID bit (Intel SDM volume 1,
 * chapters 13 and 14 to 18). */
static const struct {
    int leaf, subleaf, reg;
    uint32_t bits, state;
} states[] = {
    {1, 0, 2, 1u << 28 | 1u << 12 | 1u << 29, STATE_YMM},
    {7, 0, 1, 1u << 5, STATE_YMM},
    {7, 0, 1, 1u << 16 | 1u << 17 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28 | 1u << 30 | 1u << 31,
     STATE_ZMM},
    {7, 0, 2, 1u << 9 | 1u << 10, STATE_YMM},
    {7, 0, 2, 1u << 1 | 1u << 6 | 1u << 11 | 1u << 12 | 1u << 14, STATE_ZMM},
    {7, 0, 3, 1u << 2 | 1u << 3 | 1u << 8 | 1u << 23, STATE_ZMM},
    {7, 0, 3, 1u << 22 | 1u << 24 | 1u << 25, STATE_TILE},
    {7, 1, 0, 1u << 4 | 1u << 23, STATE_YMM},
    {7, 1, 0, 1u << 5, STATE_ZMM},
    {7, 1, 0, 1u << 21, STATE_TILE},
    {7, 1, 3, 1u << 4 | 1u << 5 | 1u << 10, STATE_YMM},
    {7, 1, 3, 1u << 8, STATE_TILE},
};

static uint32_t needed_state(const struct feature *f) {
    uint32_t state = 0;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (states[i].leaf == f->leaf && states[i].subleaf == f->subleaf &&
            states[i].reg == f->reg && (states[i].bits >> f->bit & 1))
            state |= states[i].state;
    return state;
}

static uint32_t enabled_state(void) {
    uint32_t r[4], low, high;
    if (!__get_cpuid_count(1, 0, &r[0], &r[1], &r[2], &r[3]) || !(r[2] >> 27 & 1)) return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static bool cpu_has(const struct feature *f) {
    uint32_t r[4];
    if (!__get_cpuid_count((unsigned)f->leaf, (unsigned)f->subleaf, &r[0], &r[1], &r[2], &r[3]))
        return false;
    uint32_t state = needed_state(f);
    return (r[f->reg] >> f->bit & 1) && (enabled_state() & state) == state;
}
#else
static bool cpu_has(const struct feature *f) {
    (void)f;
    return false;
}
#endif

bool feature_permit(const struct feature *f, unsigned *code, unsigned *argument) {
    return f->permit && sscanf(f->permit, "arch_prctl %x %u", code, argument) == 2;
}

/* Asks the kernel for state that it gives only on request; once more does no harm. */
static bool permitted(const struct feature *f) {
#if defined(SYS_arch_prctl)
    unsigned code, argument;
    return feature_permit(f, &code, &argument) && syscall(SYS_arch_prctl, code, argument) == 0;
#else
    (void)f;
    return false;
#endif
}

bool machine_feature_present(const struct feature *f) {
    if (f->leaf < 0 || f->capability)
        return false; /* a capability is a device's, which the backend asks for */
    return cpu_has(f) && (!f->permit || permitted(f));
}

void machine_fit_here(struct machine *m) {
    uint64_t absent = 0;
    int kept = 0;
    for (int i = 0; i < m->nfeatures && i < 64; i++)
        if (!machine_feature_present(&m->feature[i])) absent |= UINT64_C(1) << i;
    if (m->needs_features & absent) return;
    for (int i = 0; i < m->ninstrs; i++)
        if (!(m->instr[i].needs_features & absent)) m->instr[kept++] = m->instr[i];
    m->ninstrs = kept;
}

bool machine_runs_here(const struct machine *m, struct diags *d) {
    bool all = true;
    for (int i = 0; i < m->nfeatures; i++) {
        if (!(m->needs_features >> i & 1) || machine_feature_present(&m->feature[i])) continue;
        const char *why = cpu_has(&m->feature[i]) ? "which the operating system does not permit"
                                                  : "which this computer does not have";
        diag_line(d, m->file, 0, 0,
                  "machine '%s' needs feature '%s', %s, expected another machine or 'sim'", m->name,
                  m->feature[i].id, why);
        all = false;
    }
    return all;
}
