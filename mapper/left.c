/* Why no instruction, or none of a device, executes a sum of products: of the instructions that
 * multiply and add, the one that comes nearest. */
#include "mapper/rewrite_int.h"

#include <string.h>

enum { STEPS = 100000 /* of a statement's search */ };

/* Of the instructions that are asked about. */
static bool multiplies(const struct machine *m, const struct needle *n, bool device) {
    struct product_types t;
    return n->offered && needle_product(n, &t) &&
           !(device && machine_queue_is_host(m, m->instr[n->instr].queue));
}

static const char *reason_of(struct arena *a, const struct needles *needles,
                             const struct program *p, int stmt, bool device) {
    struct search s = {.arena = a, .needles = needles, .limit = STEPS};
    struct site site = site_of(a, p, stmt);
    const struct failure *best = NULL;
    for (int i = 0; i < needles->n; i++)
        if (multiplies(needles->machine, &needles->at[i], device))
            search_pair(&s, &needles->at[i], &site);
    if (s.nmappings && device) return NULL;
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
                 int n, bool device, const char **why) {
    struct needles *needles = needles_open(m);
    bool any = false;
    for (int i = 0; i < needles->n; i++) any |= multiplies(m, &needles->at[i], device);
    for (int i = 0; any && i < n; i++) why[i] = reason_of(a, needles, p, stmt[i], device);
    needles_close(needles);
    return any;
}
