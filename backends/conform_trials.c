#include "backends/conform_int.h"

#include <string.h>

/* Sizes: all at their low ends, all at their high ends, and each one alone at the other end. */
static int64_t size_end(const struct site *s, int i, bool high) {
    int64_t lo = 1, hi = -1, step = 1;
    if (!instr_size_range(s->machine, s->instr, i, &lo, &hi, &step)) hi = -1;
    if (step < 1) step = 1;
    if (hi < 0 && lo < 1) lo = 1;
    if (!high) return lo;
    return hi < 0 ? lo + 6 * step : hi;
}

static void set_sizes(struct site *s, int pattern, bool capped) {
    int n = s->instr->nranged;
    for (int i = 0; i < n; i++) {
        bool high = pattern == 1 || (pattern >= 2 && pattern - 2 < n && pattern - 2 == i) ||
                    (pattern >= 2 + n && pattern - 2 - n != i);
        int64_t lo, hi, step, v = size_end(s, i, high);
        if (capped && high && instr_size_range(s->machine, s->instr, i, &lo, &hi, &step) &&
            hi > lo + 5 * step)
            v = lo + 5 * (step > 0 ? step : 1);
        s->size[i] = (struct known){true, v};
    }
}

/* The distance between neighbours of a place in a dense array: what the faster places take. */
static int64_t dense_stride(const struct site *s, int operand, int place) {
    int64_t extent[MAX_DIMS], span[MAX_DIMS], stride = 1;
    const struct operand_layout *l = &s->instr->operand[operand].layout[s->layout[operand]];
    int ndims = site_buffer(s, operand)->ndims, n = ndims;
    if (!site_extents(s, operand, extent)) return -1;
    if (l->map) {
        n = 0;
        int64_t all[MAX_DIMS];
        if (l->map->nplaces > MAX_DIMS) return -1;
        layout_extents(l->map, extent, all);
        for (int k = 0; k < l->map->nplaces; k++)
            if (!l->map->place[k].unit) span[n++] = all[k];
    } else {
        memcpy(span, extent, (size_t)ndims * sizeof *span);
    }
    for (int k = n - 1; k > place; k--) stride *= span[k];
    return stride;
}

static bool set_strides(struct site *s, bool padded) {
    const struct instr *x = s->instr;
    for (int t = 0; t < x->nstride_names; t++) s->stride[t] = (struct known){true, 1};
    for (int o = 0; o < x->noperands; o++) {
        const struct operand_layout *l = &x->operand[o].layout[s->layout[o]];
        for (int k = 0; k < l->nstrides; k++) {
            if (l->stride[k]->kind != MEXPR_NAME) continue;
            for (int t = 0; t < x->nstride_names; t++) {
                if (strcmp(x->stride_name[t], l->stride[k]->name)) continue;
                int64_t dense = dense_stride(s, o, k);
                if (dense < 0) return false;
                if (padded) dense += 16;
                if (dense > s->stride[t].value) s->stride[t].value = dense;
            }
        }
    }
    return true;
}

static void set_layouts(struct site *s, int variant) {
    for (int o = 0; o < s->instr->noperands; o++) {
        int n = s->instr->operand[o].nlayouts > 0 ? s->instr->operand[o].nlayouts : 1;
        s->layout[o] = variant % n;
        variant /= n;
    }
}

/* Operands in one memory lie beside one another. */
static void set_addresses(struct site *s) {
    for (int o = 0; o < s->instr->noperands; o++) {
        int64_t at = 0;
        if (s->memory[o] < 0) continue;
        const struct memory *m = &s->machine->memory[s->memory[o]];
        int64_t word = m->word > 0 ? m->word : 1;
        for (int k = 0; k < o; k++) {
            int64_t span = s->memory[k] == s->memory[o] ? site_span(s, k) : 0;
            int64_t bytes = span > 0 ? span * (int64_t)type_size(s->instr->operand[k].type) : 0;
            at += (bytes + word - 1) / word * word;
        }
        s->address[o] = (struct known){true, at};
    }
}

static bool legal(const struct site *s) {
    for (int o = 0; o < s->instr->noperands; o++) {
        int64_t span = s->memory[o] == MEMORY_IMM ? 1 : site_span(s, o);
        if (span < 0 || span > MAX_ELEMENTS) return false;
    }
    for (int r = 0; r < s->instr->nrequires; r++) {
        double v;
        if (!site_eval(s, s->instr->require[r], &v, NULL) || v == 0) return false;
    }
    return true;
}

static void set_immediates(struct site *s, double v) {
    double whole = v == 0 ? 0 : v < 1 ? 1 : v;
    for (int o = 0; o < s->instr->noperands; o++) {
        if (s->memory[o] != MEMORY_IMM) continue;
        if (type_is_float(s->instr->operand[o].type))
            s->imm[o].f = v;
        else
            s->imm[o].i = type_wrap(s->instr->operand[o].type, (uint64_t)whole);
    }
}

/* The n-th of some numbers, or where the rules of the instruction want another one that. */
static bool legal_immediates(struct site *s, int n) {
    static const double number[] = {3, -2, 0.5, 1, 0};
    enum { FIRST = 4, ALL = sizeof number / sizeof *number };
    for (int k = 0; k < ALL; k++) {
        set_immediates(s, number[k < FIRST ? (n + k) % FIRST : k]);
        if (legal(s)) return true;
    }
    return false;
}

int trials_make(struct arena *a, const struct machine *m, const struct instr *x, bool draft,
                struct site **out) {
    int n = 0, layouts = 1, flags = 0;
    for (int o = 0; o < x->noperands; o++) {
        if (x->operand[o].nlayouts > 1 && layouts * x->operand[o].nlayouts <= 16)
            layouts *= x->operand[o].nlayouts;
        flags += x->operand[o].accumulate != NULL;
    }
    int patterns = x->nranged ? 2 + 2 * x->nranged : 1;
    int total = patterns * layouts * (flags ? 2 : 1) * (x->nstride_names ? 2 : 1);
    for (int k = 0; k < total && n < MAX_TRIALS; k++) {
        int rest = k;
        struct site *s = site_new(a, m, x);
        bool known = false;
        s->draft = draft;
        int padded = x->nstride_names ? rest % 2 : 0;
        rest /= x->nstride_names ? 2 : 1;
        for (int f = 0; f < flags; f++) s->flag[f] = (struct known){true, rest % 2};
        rest /= flags ? 2 : 1;
        set_layouts(s, rest % layouts);
        for (int capped = 0; capped < 2 && !known; capped++) {
            set_sizes(s, rest / layouts, capped);
            known = set_strides(s, padded);
            set_addresses(s);
            known = known && legal_immediates(s, k);
        }
        if (known) out[n++] = s;
    }
    return n;
}
