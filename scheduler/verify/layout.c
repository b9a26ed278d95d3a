/* Where a home has the elements of its buffer: factors of indices, in steps of bytes. */
#include "scheduler/verify/sym.h"

static bool digit_of(const struct lexpr *x, struct digit *out) {
    if (x->op == 'i') {
        *out = (struct digit){.index = x->index, .div = 1, .mod = INT64_MAX};
        return true;
    }
    if ((x->op != '/' && x->op != '%') || x->b->op != 'n' || x->b->number <= 0 ||
        !digit_of(x->a, out))
        return false;
    int64_t by = x->b->number;
    if (x->op == '%') {
        if (out->mod == INT64_MAX || out->mod % by == 0) out->mod = by;
        return out->mod <= by;
    }
    if (__builtin_mul_overflow(out->div, by, &out->div)) return false;
    if (out->mod == INT64_MAX) return true;
    if (out->mod % by != 0) return false;
    out->mod /= by;
    return true;
}

/* A place: a factor, or the sum of factors times numbers, each with its distance. */
static bool digits_of(const struct lexpr *x, int64_t stride, struct home_layout *h) {
    if (x->op == '+') return digits_of(x->a, stride, h) && digits_of(x->b, stride, h);
    if (x->op == '*' && x->a->op == 'n')
        return x->a->number > 0 && !__builtin_mul_overflow(stride, x->a->number, &stride) &&
               digits_of(x->b, stride, h);
    if (h->n == SYM_DIGITS || !digit_of(x, &h->d[h->n])) return false;
    h->d[h->n++].stride = stride;
    return true;
}

/* The factors of each index stand one above the other; the period is what they can tell apart. */
static bool digits_chain(struct home_layout *h, int ndims) {
    for (int e = 0; e < ndims; e++) {
        int64_t next = 1;
        bool found = true;
        while (found && next != INT64_MAX) {
            found = false;
            for (int k = 0; k < h->n && !found; k++) {
                if (h->d[k].index != e || h->d[k].div != next || h->d[k].mod == 1) continue;
                found = true;
                if (h->d[k].mod == INT64_MAX)
                    next = INT64_MAX;
                else if (__builtin_mul_overflow(next, h->d[k].mod, &next))
                    return false;
            }
        }
        h->period[e] = next;
        for (int k = 0; k < h->n; k++)
            if (h->d[k].index == e && h->d[k].mod != 1 && h->d[k].div >= next) return false;
    }
    return true;
}

/* Factor k of an index goes on where another one ends, in bytes too: they are one. */
static bool joins_another(struct home_layout *h, int k) {
    const struct digit high = h->d[k];
    for (int i = 0; i < h->n; i++) {
        struct digit *low = &h->d[i];
        int64_t div, stride, mod = INT64_MAX;
        if (low->index != high.index || low->mod == INT64_MAX ||
            __builtin_mul_overflow(low->div, low->mod, &div) || div != high.div ||
            __builtin_mul_overflow(low->stride, low->mod, &stride) || stride != high.stride ||
            (high.mod != INT64_MAX && __builtin_mul_overflow(low->mod, high.mod, &mod)))
            continue;
        low->mod = mod;
        h->d[k] = h->d[--h->n];
        return true;
    }
    return false;
}

static void join_digits(struct home_layout *h) {
    for (int k = 0; k < h->n; k++)
        if (joins_another(h, k)) k = -1;
}

static bool layout_digits(const struct place *p, const struct buffer *b, struct home_layout *h) {
    const int64_t *extent = p->extent ? p->extent : b->extent;
    int64_t places[64], stride = (int64_t)type_size(b->type);
    if (b->ndims > SYM_INDICES || b->ndims > SYM_DIGITS) return false;
    if (!p->layout) {
        h->n = b->ndims;
        for (int e = b->ndims - 1; e >= 0; e--) {
            h->d[e] = (struct digit){e, 1, INT64_MAX, stride};
            h->period[e] = INT64_MAX;
            stride *= extent[e];
        }
        return true;
    }
    if (p->layout->nplaces > SYM_DIGITS || p->layout->nindices != b->ndims) return false;
    layout_extents(p->layout, extent, places);
    h->n = 0;
    for (int k = p->layout->nplaces - 1; k >= 0; k--) {
        if (p->layout->place[k].unit || !digits_of(p->layout->place[k].expr, stride, h))
            return false;
        stride *= places[k];
    }
    join_digits(h);
    return digits_chain(h, b->ndims);
}

const struct home_layout *sym_layout(struct sym *s, int place) {
    struct home_layout *h = &s->home[place];
    const struct place *p = &s->v->s->place[place];
    if (!h->known) h->usable = layout_digits(p, &s->v->p->buffer[p->buffer], h);
    h->known = true;
    if (h->usable) return h;
    sym_fail(s, "the layout of place '%s' is not followed", p->name);
    return NULL;
}

bool home_address(struct sym *s, int place, const struct affine *index, struct affine *out) {
    const struct home_layout *h = sym_layout(s, place);
    if (!h) return false;
    *out = affine_of(0);
    for (int k = 0; k < h->n; k++) {
        struct affine quotient = index[h->d[k].index], rest;
        if (h->d[k].div > 1 && !affine_divide(s, &quotient, h->d[k].div, &quotient, &rest))
            return false;
        if (h->d[k].mod != INT64_MAX) {
            if (!affine_divide(s, &quotient, h->d[k].mod, &rest, &quotient)) return false;
        }
        if (!affine_add(out, &quotient, h->d[k].stride))
            return sym_fail(s, "an address is out of range");
    }
    return true;
}
