/* Covers of one program are made again and again, with other answers and without what was refused,
 * and meet the same rewrites. What came of proving one is remembered, by the text of both programs:
 * by a hash of it, since the chain of changes of the schedule that is taken is proved anew. */
#include "mapper/rewrite_int.h"
#include "ir/number.h"

enum { BUCKETS = 64 };

struct known_proof {
    struct known_proof *next;
    uint64_t hash;
    bool holds;
};

struct known_proofs {
    struct known_proof *bucket[BUCKETS];
};

static uint64_t key_of(const struct derivation *d, const struct program *before) {
    struct text text = {0};
    uint64_t hash = (uint64_t)d->stmt;
    program_print(before, &text);
    for (int k = 0; k < d->nsteps; k++) text_printf(&text, "%s\n", d->step[k]->name);
    program_print(d->program, &text);
    for (size_t i = 0; i < text.n; i++) hash = hash_add(hash, text.at[i]);
    text_free(&text);
    return hash;
}

bool derivation_known(const struct needles *needles, const struct derivation *d,
                      const struct program *before) {
    struct needles *kept = needles->kept;
    uint64_t hash = key_of(d, before);
    if (!kept->proofs) kept->proofs = arena_alloc(&kept->arena, sizeof *kept->proofs);
    struct known_proof **at = &kept->proofs->bucket[hash % BUCKETS], *x = *at;
    while (x && x->hash != hash) x = x->next;
    if (!x) {
        x = arena_alloc(&kept->arena, sizeof *x);
        *x = (struct known_proof){*at, hash, derivation_prove(d, before, NULL)};
        *at = x;
    }
    return x->holds;
}
