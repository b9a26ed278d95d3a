/* What hardware makes an instruction wait for: earlier ones in other queues, coupled by an
 * interlock (or in queues with order=data), that write what it reads or use what it writes. As
 * instructions enter their queues in program order, the last writer and the last readers of each
 * piece of memory are known exactly. */
#include "scheduler/clock/period_int.h"

#include <math.h>
#include <string.h>

/* Of a fallback: the box's part of a row-major home, all of any other. */
static bool home_use(const struct engine *e, const struct executed *x, const struct access *a,
                     struct use *out) {
    const struct program *p = e->schedule->program;
    int place = schedule_home(e->schedule, a->buffer);
    if (place < 0) return false;
    const struct place *home = &e->schedule->place[place];
    const struct buffer *b = &p->buffer[a->buffer];
    int64_t size = (int64_t)type_size(b->type), stride = size, lo = 0, hi = 0;
    *out = (struct use){.memory = home->memory,
                        .address = home->address,
                        .bytes = home->bytes,
                        .unread = e->unread && e->unread[place]};
    if (home->layout) return true;
    for (int d = b->ndims - 1; d >= 0; d--) {
        int64_t first = access_coef(p, a, d, p->naxes), last = first;
        for (int k = 0; k < p->naxes; k++) {
            int64_t c = access_coef(p, a, d, k);
            if (!c || x->hi[k] <= x->lo[k]) continue;
            first += c * (c > 0 ? x->lo[k] : x->hi[k] - 1);
            last += c * (c > 0 ? x->hi[k] - 1 : x->lo[k]);
        }
        if (first < 0) first = 0;
        if (last >= b->extent[d]) last = b->extent[d] - 1;
        if (last < first) return false;
        lo += first * stride;
        hi += last * stride;
        stride *= (home->extent ? home->extent : b->extent)[d];
    }
    out->address += lo;
    out->bytes = hi - lo + size;
    return true;
}

static int uses_of_fallback(const struct engine *e, const struct executed *x, struct use *use) {
    const struct stmt *s = &e->schedule->program->stmt[x->node->fallback->stmt];
    int n = 0;
    for (int a = 0; a < e->schedule->program->naxes; a++)
        if ((s->axes >> a & 1) && x->hi[a] <= x->lo[a]) return 0;
    if (home_use(e, x, &s->dst, &use[n])) use[n++].writes = true;
    for (int r = 0; r < s->nreads && n < SIM_OPERANDS; r++)
        if (home_use(e, x, &s->read[r], &use[n])) use[n++].reads = true;
    return n;
}

static int uses_of(struct engine *e, const struct executed *x, struct use *use) {
    if (x->node->kind == NODE_FALLBACK) return uses_of_fallback(e, x, use);
    if (x->node->kind == NODE_CONFIGURE) return configure_uses(e, x->node->configure, use);
    if (x->node->kind != NODE_ISSUE) return 0;
    const struct issue_node *i = x->node->issue;
    const struct instr *in = &e->machine->instr[i->instr];
    const struct shape *s = shape_of(e, x->node, x);
    int n = 0;
    for (int o = 0, flag = 0; s && o < in->noperands; o++) {
        bool overwrites = in->operand[o].accumulate && x->flag[flag++] == 0;
        if (i->arg[o].place < 0) continue;
        int64_t size = (int64_t)type_size(in->operand[o].type), lo = 0, hi = 0;
        for (int k = 0; k < x->nloops; k++)
            *(x->move[k][o] < 0 ? &lo : &hi) += x->move[k][o] * (x->trips[k] - 1);
        if (x->entries) lo += x->entries->lo[o], hi += x->entries->hi[o];
        use[n++] = (struct use){.memory = e->schedule->place[i->arg[o].place].memory,
                                .address = x->address[o] + lo + s->reach[o].lo * size,
                                .bytes = (s->reach[o].hi - s->reach[o].lo + 1) * size + hi - lo,
                                .reads = in->operand[o].role != ROLE_OUT && !overwrites,
                                .writes = in->operand[o].role != ROLE_IN,
                                .unread = e->unread && e->unread[i->arg[o].place]};
    }
    n += need_uses(e, x, use + n);
    return n + remains_uses(e, i, use + n);
}

static void range_of(const struct image *image, const struct use *u, int64_t *first,
                     int64_t *last) {
    *first = u->address / image->piece;
    *last = u->bytes > 0 ? (u->address + u->bytes - 1) / image->piece : *first - 1;
}

/* The queues whose instructions it may have to follow, a bit for each. */
static uint64_t leaders(const struct engine *e, const struct executed *x) {
    return e->interlocked[x->queue] & ~(UINT64_C(1) << x->queue);
}

static void enter_use(struct engine *e, const struct executed *x, const struct use *u) {
    struct image *image = image_of(e, u->memory);
    int64_t first, last;
    if (!image) return;
    uint64_t lead = leaders(e, x);
    range_of(image, u, &first, &last);
    marks_numbers(&image->marks, first, last, lead, u->writes ? lead : 0, x->after);
}

static void leave_mark(struct engine *e, const struct executed *x, const struct use *u) {
    struct image *image = image_of(e, u->memory);
    struct mark mark = {.kind = MARK_READER, .queue = x->queue, .number = x->number};
    int64_t first, last;
    if (!image) return;
    range_of(image, u, &first, &last);
    if (u->reads) marks_put(&image->marks, first, last, &mark);
    mark.kind = MARK_WRITER;
    if (u->writes) marks_put(&image->marks, first, last, &mark);
}

/* Beside a device, what the host's unit does is one thread's work, in program order. */
static void follow_thread(const struct engine *e, const struct executed *x) {
    const struct machine *m = e->machine;
    for (int q = 0; q < m->nqueues; q++)
        if (q != x->queue && e->is_host[q] && m->queue[q].unit == m->queue[x->queue].unit)
            x->after[q] = e->queue[q].dispatched;
}

void order_enter(struct engine *e, const struct executed *x) {
    struct use use[SIM_OPERANDS + 2 * SIM_USES];
    memset(x->after, 0, (size_t)e->machine->nqueues * sizeof *x->after);
    if (e->joined && e->is_host[x->queue]) follow_thread(e, x);
    bool waits = e->interlocked[x->queue], relied = e->relied >> x->queue & 1;
    if (!waits && !relied) return;
    int n = uses_of(e, x, use);
    for (int k = 0; waits && k < n; k++) enter_use(e, x, &use[k]);
    for (int k = 0; relied && k < n; k++) {
        if (e->exact || e->led >> x->queue & 1) leave_mark(e, x, &use[k]);
        touch_entered(e, x, &use[k], k);
    }
}

bool order_ready(const struct engine *e, const struct executed *x) {
    for (int q = 0; e->tracks && q < e->machine->nqueues; q++)
        if (e->queue[q].ran < x->after[q]) return false;
    return true;
}

/* When all that it reads is visible. Queues in order also wait before they overwrite: out-of-order
 * ones rename. */
double order_visible(struct engine *e, const struct executed *x) {
    struct use use[SIM_OPERANDS + 2 * SIM_USES];
    double at = 0;
    if (!e->tracks || !e->interlocked[x->queue]) return 0;
    bool renames = e->machine->queue[x->queue].data_order;
    int n = uses_of(e, x, use);
    for (int k = 0; k < n; k++) {
        struct image *image = image_of(e, use[k].memory);
        int64_t first, last;
        if (!image || (renames && !use[k].reads)) continue;
        range_of(image, &use[k], &first, &last);
        uint64_t others = e->interlocked[x->queue];
        bool overwrites = use[k].writes && !renames;
        at = fmax(at, marks_time(&image->marks, first, last, others, overwrites ? others : 0));
    }
    return at;
}

void order_ran(struct engine *e, const struct executed *x, double end, double visible) {
    struct use use[SIM_OPERANDS + 2 * SIM_USES];
    struct mark written = {.kind = MARK_WRITTEN, .queue = x->queue, .at = visible},
                read = {.kind = MARK_READ, .queue = x->queue, .at = end};
    if (!(e->relied >> x->queue & 1)) return;
    int n = uses_of(e, x, use);
    for (int k = 0; k < n; k++) {
        struct image *image = image_of(e, use[k].memory);
        int64_t first, last;
        if (!image) continue;
        range_of(image, &use[k], &first, &last);
        touch_ran(e, x, &use[k], k, end, visible);
        if (use[k].writes && !use[k].unread) marks_put(&image->marks, first, last, &written);
        if (use[k].reads) marks_put(&image->marks, first, last, &read);
    }
}
