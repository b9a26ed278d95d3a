/* How far a stride that the schedule chooses may go: as far as the fields of the instruction's words
 * that say it can hold. */
#include "machines/reach.h"

#include <math.h>
#include <string.h>

static const int64_t FARTHEST = INT64_C(1) << 52; /* doubles hold it */

struct asked {
    const struct machine *m;
    const struct program *p; /* the semantics as bound, for its constants */
    const char *name;
    int64_t stride;
    bool met;
};

static bool value_of(void *user, const char *name, const char *field, double *out) {
    struct asked *a = user;
    if (field) return false;
    if (strcmp(name, a->name) == 0) {
        a->met = true;
        *out = (double)a->stride;
        return true;
    }
    for (int k = 0; k < a->p->nparams; k++) {
        if (strcmp(a->p->param[k].name, name) != 0) continue;
        *out = (double)a->p->param[k].value;
        return true;
    }
    for (int k = 0; k < a->m->nparams; k++) {
        if (strcmp(a->m->param[k].name, name) != 0) continue;
        *out = (double)a->m->param[k].value;
        return true;
    }
    return false;
}

/* Fields that say other things too hold what they can. */
static bool field_holds(struct asked *a, const struct field *f) {
    struct mexpr_env env = {value_of, NULL, a};
    double v;
    int64_t bits;
    a->met = false;
    if (!f->value || !mexpr_eval(f->value, &env, &v, NULL) || !a->met) return true;
    if (!mexpr_integer(f->bits, &env, &bits, NULL) || bits >= 52) return true;
    return v >= (f->is_signed ? -ldexp(1, (int)bits - 1) : 0) &&
           v <= ldexp(1, (int)bits - f->is_signed) - 1;
}

static bool fields_hold(struct asked *a, const struct field *f, int n) {
    for (int k = 0; k < n; k++)
        if (!field_holds(a, &f[k])) return false;
    return true;
}

static bool words_hold(struct asked *a, const struct emit *e, int64_t stride) {
    a->stride = stride;
    for (int k = 0; k < e->nwords; k++) {
        if (!fields_hold(a, e->word[k].field, e->word[k].nfields)) return false;
        for (int f = e->word[k].format; f >= 0; f = a->m->format[f].base)
            if (!fields_hold(a, a->m->format[f].field, a->m->format[f].nfields)) return false;
    }
    return true;
}

int64_t stride_reach(const struct machine *m, const struct instr *in, const struct program *bound,
                     int name) {
    const struct emit *e = instr_emit(in, LANGUAGE_BITS);
    struct asked a = {.m = m, .p = bound, .name = in->stride_name[name]};
    int64_t lo = 0, hi = FARTHEST;
    if (!e || words_hold(&a, e, hi)) return hi;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        *(words_hold(&a, e, mid) ? &lo : &hi) = mid;
    }
    return lo;
}
