#include "bench/limit.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIZES = 16, UNBOUNDED_SIZE = 256 };

/* ---- instructions at their largest ---- */

struct scope {
    const struct machine *m;
    const struct program *p;
};

static bool scope_name(void *user, const char *name, const char *field, double *out) {
    const struct scope *s = user;
    if (field) return false;
    for (int i = 0; i < s->p->nparams; i++)
        if (strcmp(s->p->param[i].name, name) == 0)
            return *out = (double)s->p->param[i].value, true;
    for (int i = 0; i < s->m->nparams; i++)
        if (strcmp(s->m->param[i].name, name) == 0)
            return *out = (double)s->m->param[i].value, true;
    return false;
}

/* NULL: no sizes can be named without knowing others. */
static struct program *bind_largest(const struct machine *m, const struct instr *x) {
    int64_t size[MAX_SIZES], lo, hi, step;
    if (x->nranged > MAX_SIZES) return NULL;
    for (int i = 0; i < x->nranged; i++) {
        if (!instr_size_range(m, x, i, &lo, &hi, &step)) return NULL;
        if (hi < 0 || hi > lo + UNBOUNDED_SIZE * step) hi = lo + UNBOUNDED_SIZE * step;
        size[i] = lo + (hi - lo) / step * step;
    }
    struct diags ignored;
    diags_init(&ignored);
    struct program *p = instr_bind(m, x, size, &ignored);
    diags_free(&ignored);
    return p;
}

static double interval_of(const struct machine *m, const struct instr *x, const struct program *p) {
    struct scope s = {m, p};
    struct mexpr_env env = {.name = scope_name, .user = &s};
    double interval;
    return mexpr_eval(x->interval, &env, &interval, NULL) && interval > 0 ? interval : 1;
}

static double width_of(const struct machine *m, const struct instr *x) {
    return x->queue >= 0 && m->queue[x->queue].width > 0 ? (double)m->queue[x->queue].width : 1;
}

static bool factor_types(const struct stmt *s, const struct program *p, enum type *a,
                         enum type *b) {
    enum type found[2];
    if (!stmt_is_mac(p, s) || s->nreads != 2) return false;
    for (int r = 0; r < 2; r++) found[r] = p->buffer[s->read[r].buffer].type;
    *a = found[0] < found[1] ? found[0] : found[1];
    *b = found[0] < found[1] ? found[1] : found[0];
    return true;
}

bool program_mac_types(const struct program *p, enum type *a, enum type *b) {
    int64_t most = 0;
    for (int s = 0; s < p->nstmts; s++) {
        enum type x, y;
        if (!factor_types(&p->stmt[s], p, &x, &y) || stmt_points(p, &p->stmt[s]) <= most) continue;
        most = stmt_points(p, &p->stmt[s]);
        *a = x, *b = y;
    }
    return most > 0;
}

/* The one sum of products of these types; -1. */
static int mac_of(const struct program *p, enum type a, enum type b) {
    int found = -1;
    for (int s = 0; s < p->nstmts; s++) {
        enum type x, y;
        if (factor_types(&p->stmt[s], p, &x, &y) && x == a && y == b) found = s;
    }
    return found;
}

void mac_unit_find(const struct machine *m, enum type a, enum type b, struct mac_unit *best) {
    *best = (struct mac_unit){.instr = -1};
    for (int i = 0; i < m->ninstrs; i++) {
        const struct instr *x = &m->instr[i];
        if (x->is_move) continue;
        struct program *p = bind_largest(m, x);
        int s = p ? mac_of(p, a, b) : -1;
        double rate =
            s < 0 ? 0 : (double)stmt_points(p, &p->stmt[s]) / interval_of(m, x, p) * width_of(m, x);
        if (rate > best->rate) {
            mac_unit_free(best);
            *best = (struct mac_unit){i, p, s, rate};
        } else if (p) {
            program_free(p);
        }
    }
}

void mac_unit_free(struct mac_unit *u) {
    if (u->semantics) program_free(u->semantics);
    *u = (struct mac_unit){.instr = -1};
}

int64_t parallel_units(const struct machine *m, int unit, int threads) {
    int64_t n = 1;
    for (int u = unit; u >= 0; u = m->unit[u].parent)
        n *= m->unit[u].count > 0 && !m->unit[u].is_virtual ? m->unit[u].count : 1;
    return threads > 0 && n > threads ? threads : n;
}

/* ---- what the program needs ---- */

struct needs {
    const struct schedule *s;
    int *executor; /* by statement of the scheduled program: instruction, or -1 */
    double *queue, *bus;
    int threads;
    bool device; /* a host beside it does not count */
};

static bool counts(const struct needs *n, int queue) {
    return queue >= 0 && !(n->device && machine_queue_is_host(n->s->machine, queue));
}

static void find_executors(struct needs *n, const struct node *node, int count) {
    for (int i = 0; i < count; i++) {
        if (node[i].kind == NODE_LOOP)
            find_executors(n, node[i].loop->body, node[i].loop->nbody);
        else if (node[i].kind == NODE_ISSUE && node[i].issue->stmt >= 0)
            n->executor[node[i].issue->stmt] = node[i].issue->instr;
    }
}

static void add_work(struct needs *n, int instr, int64_t points, double points_at_once,
                     double interval) {
    const struct machine *m = n->s->machine;
    const struct instr *x = &m->instr[instr];
    if (!counts(n, x->queue)) return;
    double units = (double)parallel_units(m, m->queue[x->queue].unit, n->threads);
    n->queue[x->queue] += (double)points / points_at_once * interval / width_of(m, x) / units;
}

static void need_of_stmt(struct needs *n, int stmt) {
    const struct machine *m = n->s->machine;
    const struct program *p = n->s->program;
    int by = n->executor[stmt];
    enum type a, b;
    if (by < 0 || m->instr[by].is_move || !counts(n, m->instr[by].queue)) return;
    int64_t points = stmt_points(p, &p->stmt[stmt]);
    if (factor_types(&p->stmt[stmt], p, &a, &b)) {
        struct mac_unit u;
        mac_unit_find(m, a, b, &u);
        if (u.instr >= 0) add_work(n, u.instr, points, u.rate, width_of(m, &m->instr[u.instr]));
        bool found = u.instr >= 0;
        mac_unit_free(&u);
        if (found) return;
    }
    struct program *bound = bind_largest(m, &m->instr[by]);
    if (!bound) return;
    double most = 0;
    for (int s = 0; s < bound->nstmts; s++)
        most = fmax(most, (double)stmt_points(bound, &bound->stmt[s]));
    if (most > 0) add_work(n, by, points, most, interval_of(m, &m->instr[by], bound));
    program_free(bound);
}

/* The one bus of all moves that read (or write) the home; -1: there are several, or moves without a
 * bus. */
static int home_bus(const struct needs *n, bool reads) {
    const struct machine *m = n->s->machine;
    int bus = -1;
    for (int i = 0; i < m->ninstrs; i++) {
        const struct instr *x = &m->instr[i];
        const int *memory = reads ? x->from : x->to;
        if (!x->is_move || !counts(n, x->queue)) continue;
        for (int k = 0; k < (reads ? x->nfrom : x->nto); k++) {
            if (!memory_is_home(m, memory[k])) continue;
            if (x->bus < 0 || (bus >= 0 && x->bus != bus)) return -1;
            bus = x->bus;
        }
    }
    return bus;
}

static void need_of_buses(struct needs *n, const struct program *p) {
    const struct machine *m = n->s->machine;
    int in = home_bus(n, true), out = home_bus(n, false);
    double written = 0, all = (double)program_touched_bytes(p);
    for (int b = 0; b < p->nbuffers; b++)
        if (p->buffer[b].role == ROLE_OUT || p->buffer[b].role == ROLE_INOUT)
            written += (double)p->buffer[b].elements * (double)type_size(p->buffer[b].type);
    if (in >= 0 && m->bus[in].rate > 0) n->bus[in] += (all - written) / m->bus[in].rate;
    if (out >= 0 && m->bus[out].rate > 0) n->bus[out] += written / m->bus[out].rate;
}

struct limit limit_of(const struct schedule *s, const struct program *p, int threads) {
    const struct machine *m = s->machine;
    struct needs n = {.s = s, .threads = threads};
    struct limit l = {0, ""};
    for (int q = 0; q < m->nqueues; q++)
        n.device = n.device || (m->nfallbacks && !machine_queue_is_host(m, q));
    n.executor = memory_array((size_t)s->program->nstmts + 1, sizeof *n.executor);
    n.queue = memory_array((size_t)m->nqueues + 1, sizeof *n.queue);
    n.bus = memory_array((size_t)m->nbuses + 1, sizeof *n.bus);
    for (int i = 0; i < s->program->nstmts; i++) n.executor[i] = -1;
    find_executors(&n, s->run.node, s->run.nnodes);
    for (int i = 0; i < s->program->nstmts; i++) need_of_stmt(&n, i);
    need_of_buses(&n, p);
    for (int q = 0; q < m->nqueues; q++)
        if (n.queue[q] > l.cycles) l = (struct limit){n.queue[q], m->queue[q].id};
    for (int b = 0; b < m->nbuses; b++)
        if (n.bus[b] > l.cycles) l = (struct limit){n.bus[b], m->bus[b].id};
    free(n.executor);
    free(n.queue);
    free(n.bus);
    return l;
}
