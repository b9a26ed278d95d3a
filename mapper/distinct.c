/* Counting mappings modulo the needle's automorphisms: exchanging a product's operands and
 * transposing the result is one mapping. */
#include "mapper/mapper_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_AUTOMORPHISMS = 64,
    MAX_PERMUTED = 6,
    KEY_WORDS = 3 + MAX_NEEDLE_AXES + 2 * MAX_OPERANDS
};

struct automorphism {
    int operand[MAX_OPERANDS], axis[MAX_NEEDLE_AXES];
};

struct automorphisms {
    struct automorphism at[MAX_AUTOMORPHISMS];
    int n, identity;
};

struct key {
    int64_t word[KEY_WORDS];
};

static bool same_range(const struct needle_axis *a, const struct needle_axis *b) {
    return a->lo == b->lo && a->hi == b->hi && a->step == b->step;
}

/* Row d of operand o with axis x renamed to axis[x] is a row of operand `other`; each row is used
 * once. */
static bool rows_permuted(const struct needle *n, int o, int other, const int *axis) {
    const struct program *p = n->program;
    const struct access *a = n->access[o], *b = n->access[other];
    int rank = p->buffer[a->buffer].ndims;
    uint64_t used = 0;
    if (rank != p->buffer[b->buffer].ndims) return false;
    for (int d = 0; d < rank; d++) {
        int found = -1;
        for (int e = 0; e < rank && found < 0; e++) {
            bool same = !(used >> e & 1) &&
                        access_coef(p, a, d, p->naxes) == access_coef(p, b, e, p->naxes);
            for (int x = 0; x < n->naxes && same; x++)
                same = access_coef(p, a, d, x) == access_coef(p, b, e, axis[x]);
            if (same) found = e;
        }
        if (found < 0) return false;
        used |= UINT64_C(1) << found;
    }
    return true;
}

static bool preserves(const struct needle *n, const struct automorphism *m) {
    for (int x = 0; x < n->naxes; x++)
        if (!same_range(&n->axis[x], &n->axis[m->axis[x]])) return false;
    for (int o = 0; o < n->noperands; o++)
        if (!rows_permuted(n, o, m->operand[o], m->axis)) return false;
    return true;
}

static void permute(const struct needle *n, struct automorphism *m, int k,
                    struct automorphisms *out) {
    if (k == n->naxes) {
        if (preserves(n, m) && out->n < MAX_AUTOMORPHISMS) out->at[out->n++] = *m;
        return;
    }
    for (int i = k; i < n->naxes; i++) {
        int t = m->axis[k];
        m->axis[k] = m->axis[i];
        m->axis[i] = t;
        permute(n, m, k + 1, out);
        m->axis[i] = m->axis[k];
        m->axis[k] = t;
    }
}

static bool is_identity(const struct needle *n, const struct automorphism *m) {
    bool same = true;
    for (int x = 0; x < n->naxes; x++) same &= m->axis[x] == x;
    for (int o = 0; o < n->noperands; o++) same &= m->operand[o] == o;
    return same;
}

/* The needle matched with itself gives the exchanges of operands; for each the axes that go with
 * it. */
struct automorphisms *automorphisms_of(struct arena *arena, const struct machine *machine,
                                       const struct needle *n) {
    struct automorphisms *out = arena_alloc(arena, sizeof *out);
    struct arena scratch;
    struct match match;
    arena_init(&scratch);
    struct site site = {.s = NULL};
    if (n->nparts == 0) site = site_of(&scratch, n->program, 0);
    match.n = 0;
    if (!n->imm && n->naxes <= MAX_PERMUTED && n->nparts == 0)
        match_terms(&scratch, machine, n, &site, site.term.root, false, &match);
    for (int i = 0; i < match.n; i++) {
        struct automorphism m;
        for (int x = 0; x < n->naxes; x++) m.axis[x] = x;
        for (int o = 0; o < n->noperands; o++) {
            const struct bound *b = &match.at[i].operand[o];
            m.operand[o] =
                b->kind == BOUND_READ ? n->operand_of_buffer[site.s->read[b->read].buffer] : o;
        }
        permute(n, &m, 0, out);
    }
    if (out->n == 0) {
        for (int x = 0; x < n->naxes; x++) out->at[0].axis[x] = x;
        for (int o = 0; o < n->noperands; o++) out->at[0].operand[o] = o;
        out->n = 1;
    }
    arena_free(&scratch);
    for (int i = 0; i < out->n; i++)
        if (is_identity(n, &out->at[i])) out->identity = i;
    return out;
}

static struct key key_of(const struct needle *n, const struct mapping *m,
                         const struct automorphism *f) {
    struct key k = {{m->instr, m->stmt, m->init}};
    for (int x = 0; x < n->naxes; x++)
        for (int i = 0; i < m->group[x].n; i++)
            k.word[3 + f->axis[x]] |= INT64_C(1) << m->group[x].axis[i];
    for (int o = 0; o < n->noperands; o++) {
        int64_t *w = &k.word[3 + MAX_NEEDLE_AXES + 2 * f->operand[o]];
        w[0] = (int64_t)m->operand[o].role * 1000 + m->operand[o].read;
        w[1] = m->operand[o].imm.i;
    }
    return k;
}

bool mapping_representative(const struct automorphisms *own, const struct needle *n,
                            const struct mapping *m) {
    struct key first = key_of(n, m, &own->at[own->identity]);
    for (int f = 0; f < own->n; f++) {
        struct key k = key_of(n, m, &own->at[f]);
        if (memcmp(&k, &first, sizeof k) < 0) return false;
    }
    return true;
}

static int by_word(const void *a, const void *b) {
    return memcmp(a, b, sizeof(struct key));
}

int count_distinct(const struct needles *all, const struct mapping *m, int n) {
    struct key *key = memory_array((size_t)n + 1, sizeof *key);
    struct arena scratch;
    const struct automorphisms *own = NULL;
    int count = 0, instr = -1;
    arena_init(&scratch);
    for (int i = 0; i < n; i++) {
        const struct needle *needle = needle_of(all, m[i].instr);
        if (m[i].instr != instr) own = automorphisms_of(&scratch, all->machine, needle);
        instr = m[i].instr;
        for (int f = 0; f < own->n; f++) {
            struct key k = key_of(needle, &m[i], &own->at[f]);
            if (f == 0 || by_word(&k, &key[i]) < 0) key[i] = k;
        }
    }
    qsort(key, (size_t)n, sizeof *key, by_word);
    for (int i = 0; i < n; i++) count += i == 0 || by_word(&key[i], &key[i - 1]) != 0;
    arena_free(&scratch);
    free(key);
    return count;
}
