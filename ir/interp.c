#include "ir/interp_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const int64_t memory_limit = (int64_t)16 << 30;

struct runner {
    const struct program *p;
    void **data;
    bool *owned;
    call_function call;
    void *user;
    struct diags *diags;
    int64_t time[MAX_AXES];
};

static bool run_fail(struct runner *r, const char *fmt, const char *name) {
    char *text = arena_printf(&r->diags->arena, fmt, name);
    diag_line(r->diags, r->p->source.file, 0, 0, "program '%s': %s", r->p->name, text);
    return false;
}

static int64_t buffer_bytes(const struct buffer *f) {
    return f->elements * (int64_t)type_size(f->type);
}

static bool own_buffers(struct runner *r) {
    const struct program *p = r->p;
    int64_t sum = 0;
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *f = &p->buffer[b];
        if (r->data[b]) continue;
        if (f->role != ROLE_TEMP && f->role != ROLE_STATE)
            return run_fail(r, "no data is given for '%s'", f->name);
        if (__builtin_add_overflow(sum, buffer_bytes(f), &sum) || sum > memory_limit)
            return run_fail(r,
                            "the temporaries up to '%s' need more than 16 GiB, the most that the "
                            "interpreter takes",
                            f->name);
    }
    for (int b = 0; b < p->nbuffers; b++) {
        if (r->data[b]) continue;
        r->owned[b] = true;
        r->data[b] = memory_take((size_t)buffer_bytes(&p->buffer[b]) + 1, 1);
    }
    return true;
}

static void copy_buffer(struct runner *r, int to, int from) {
    memcpy(r->data[to], r->data[from], (size_t)buffer_bytes(&r->p->buffer[from]));
}

static bool run_items(struct runner *r, const struct item *item, int n);

static bool run_recur(struct runner *r, const struct recur *q) {
    const struct axis *a = &r->p->axis[q->axis];
    for (int k = 0; k < q->nstates; k++) copy_buffer(r, q->state[k].current, q->state[k].from);
    for (int64_t t = a->first; t < a->extent; t++) {
        r->time[q->axis] = q->reverse ? a->extent - 1 - t + a->first : t;
        if (!run_items(r, q->item, q->nitems)) return false;
        for (int k = 0; k < q->nstates; k++) copy_buffer(r, q->state[k].current, q->state[k].next);
    }
    for (int k = 0; k < q->nstates; k++)
        if (q->state[k].to >= 0) copy_buffer(r, q->state[k].to, q->state[k].current);
    return true;
}

static bool run_call(struct runner *r, const struct call *c) {
    int n = c->nreads + c->nwrites;
    if (!r->call)
        return run_fail(r, "'%s' is an opaque call, but no functions are given", c->function);
    void **data = memory_array((size_t)n + 1, sizeof *data);
    for (int k = 0; k < n; k++)
        data[k] = r->data[k < c->nreads ? c->read[k] : c->write[k - c->nreads]];
    bool ok = r->call(r->user, c->function, data, r->p, c);
    free(data);
    return ok ? true : run_fail(r, "the opaque call of '%s' failed", c->function);
}

static bool run_items(struct runner *r, const struct item *item, int n) {
    for (int k = 0; k < n; k++) {
        switch (item[k].kind) {
        case ITEM_STMT:
            stmt_run_at(r->p, &r->p->stmt[item[k].stmt], r->data, r->time);
            break;
        case ITEM_RECUR:
            if (!run_recur(r, item[k].recur)) return false;
            break;
        case ITEM_CALL:
            if (!run_call(r, item[k].call)) return false;
            break;
        }
    }
    return true;
}

bool program_run(const struct program *p, void *const *data, call_function call, void *user,
                 struct diags *d) {
    struct runner r = {.p = p, .call = call, .user = user, .diags = d};
    size_t n = (size_t)p->nbuffers + 1;
    r.data = memory_array(n, sizeof *r.data);
    r.owned = memory_array(n, sizeof *r.owned);
    memcpy(r.data, data, (size_t)p->nbuffers * sizeof *r.data);
    bool ok = own_buffers(&r) && run_items(&r, p->item, p->nitems);
    for (int b = 0; b < p->nbuffers; b++)
        if (r.owned[b]) memory_give(r.data[b]);
    free(r.owned);
    free(r.data);
    return ok;
}
