/* Why no instruction executes a sum of products: of the instructions that multiply and add, the one
 * that comes nearest. */
#include "mapper/rewrite_int.h"

#include <string.h>

enum { STEPS = 100000 /* of a statement's search */ };

static bool multiplies(const struct needle *n) {
    struct product_types t;
    return n->offered && needle_product(n, &t);
}

static const char *reason_of(struct arena *a, const struct needles *needles,
                             const struct program *p, int stmt) {
    struct search s = {.arena = a, .needles = needles, .limit = STEPS};
    struct site site = site_of(a, p, stmt);
    const struct failure *best = NULL;
    for (int i = 0; i < needles->n; i++)
        if (multiplies(&needles->at[i])) search_pair(&s, &needles->at[i], &site);
    if (s.nmappings)
        return arena_printf(a, "by its estimated cost '%s' is slower",
                            needles->machine->instr[s.mapping[0].instr].id);
    for (int i = 0; i < s.nfailures; i++) {
        const struct failure *f = &s.failure[i];
        if (!best || f->depth > best->depth || (f->depth == best->depth && f->alike > best->alike))
            best = f;
    }
    return best && best->reason ? best->reason : "no instruction matches it";
}

bool mapper_left(struct arena *a, const struct program *p, const struct machine *m, const int *stmt,
                 int n, const char **why) {
    struct needles *needles = needles_open(m);
    bool any = false;
    for (int i = 0; i < needles->n; i++) any |= multiplies(&needles->at[i]);
    for (int i = 0; any && i < n; i++) why[i] = reason_of(a, needles, p, stmt[i]);
    needles_close(needles);
    return any;
}
