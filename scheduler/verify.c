#include "scheduler/verify_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const size_t PAGE_LIMIT = (size_t)3 << 30;
static const int64_t DEFAULT_STEPS = 1000000000, MOST_SLOTS = 5;

bool verify_step(struct verify *v, int64_t n) {
    if (v->stop) return false;
    v->steps -= n < 0 ? 0 : n;
    if (v->steps >= 0 && v->page_bytes < PAGE_LIMIT) return true;
    return verify_limit(v, "more steps than its budget");
}

int64_t verify_instance(const struct verify *v, int unit) {
    if (unit < 0) return 0;
    int64_t above = verify_instance(v, v->m->unit[unit].parent);
    int64_t count = v->m->unit[unit].is_virtual ? VIRTUAL_INSTANCES : unit_instances(v->m, unit);
    return above * count + v->inst[unit];
}

static int *slot_of(struct verify *v, int place) {
    int64_t instance = verify_instance(v, v->m->memory[v->s->place[place].memory].unit);
    return pages_get(&v->slots, (uint64_t)place << 40 | (uint64_t)instance, NULL);
}

int verify_slot(struct verify *v, int place) {
    int slot = *slot_of(v, place);
    return slot ? slot - 1 : 0;
}

/* ---- legality of one issue ---- */
static bool site_name(void *user, const char *name, const char *field, double *out) {
    const struct site *s = user;
    const struct instr *in = &s->v->m->instr[s->n->instr];
    if (field) return false;
    for (int k = 0; k < instr_flag_count(in); k++) {
        if (strcmp(in->operand[instr_flag_operand(in, k)].accumulate, name) != 0) continue;
        *out = (double)s->flag[k];
        return true;
    }
    for (int o = 0; o < in->noperands; o++) {
        const struct operand_layout *l = &in->operand[o].layout[s->n->arg[o].layout];
        if (shape_name(s->v->m, in, l, s->size, s->stride, name, out)) return true;
    }
    return in->noperands == 0 && shape_name(s->v->m, in, NULL, s->size, s->stride, name, out);
}

static int site_operand(const struct site *s, const struct mexpr *x) {
    const struct instr *in = &s->v->m->instr[s->n->instr];
    if (x->kind != MEXPR_NAME) return -1;
    for (int o = 0; o < in->noperands; o++)
        if (strcmp(in->operand[o].buffer, x->name) == 0) return o;
    return -1;
}

static bool site_place(const struct site *s, const char *function, int o, double *out) {
    if (s->n->arg[o].place < 0) return false;
    const struct memory *m = &s->v->m->memory[s->at[o].memory];
    int64_t address = s->at[o].address, word = m->word > 0 ? m->word : 1;
    int64_t interleave = m->interleave > 0 ? m->interleave : m->banks > 0 ? m->size / m->banks : 0;
    if (strcmp(function, "addr") == 0)
        *out = (double)address;
    else if (strcmp(function, "word") == 0)
        *out = (double)address / (double)word;
    else if (strcmp(function, "bank") == 0 && interleave > 0 && m->banks > 0)
        *out = (double)(address / interleave % m->banks);
    else
        return false;
    return true;
}

static bool imm_bits(enum type type, union value x, double *out) {
    uint64_t bits = 0;
    type_store(type, &bits, x);
    *out = (double)bits;
    return type_size(type) <= 4;
}

static bool site_call(void *user, const struct mexpr *call, const struct mexpr_env *env,
                      double *out) {
    const struct site *s = user;
    int o = call->nargs > 0 ? site_operand(s, call->arg[0]) : -1;
    if (o < 0) return false;
    enum type type = s->v->m->instr[s->n->instr].operand[o].type;
    if (strcmp(call->name, "value") == 0 && s->n->arg[o].place < 0) {
        *out = type_is_float(type) ? s->n->arg[o].imm.f : (double)s->n->arg[o].imm.i;
        return true;
    }
    if (strcmp(call->name, "bits") == 0 && s->n->arg[o].place < 0)
        return imm_bits(type, s->n->arg[o].imm, out);
    if (strcmp(call->name, "bytes") == 0) {
        *out = (double)s->h->operand[o].buffer_bytes;
        return true;
    }
    if (strcmp(call->name, "dim") == 0 && call->nargs == 2) {
        int b = program_buffer(s->h->bound, s->v->m->instr[s->n->instr].operand[o].buffer);
        int64_t d;
        if (b < 0 || !mexpr_integer(call->arg[1], env, &d, NULL) || d < 0 ||
            d >= s->h->bound->buffer[b].ndims)
            return false;
        *out = (double)s->h->bound->buffer[b].extent[d];
        return true;
    }
    return site_place(s, call->name, o, out);
}

struct mexpr_env site_env(struct site *s) {
    return (struct mexpr_env){.name = site_name, .call = site_call, .user = s};
}

static bool check_requires(struct site *s) {
    const struct instr *in = &s->v->m->instr[s->n->instr];
    struct mexpr_env env = site_env(s);
    for (int k = 0; k < in->nrequires; k++) {
        double x;
        const struct mexpr *missing = NULL;
        if (!mexpr_eval(in->require[k], &env, &x, &missing))
            return verify_error(s->v, "the rule '%s' of '%s' cannot be evaluated",
                                in->require[k]->text, in->id);
        if (x == 0)
            return verify_error(s->v, "the rule '%s' of '%s' is broken", in->require[k]->text,
                                in->id);
    }
    return true;
}

/* The operand's memory as the instruction names it: a cache stands for what it caches. */
static const struct memory *named_memory(const struct verify *v, const struct operand *o,
                                         int memory) {
    for (int k = 0; k < o->nmemories; k++)
        if (o->memory[k] == memory) return &v->m->memory[memory];
    for (int k = 0; k < o->nmemories; k++)
        if (o->memory[k] >= 0 && memory_is_home(v->m, o->memory[k]))
            return &v->m->memory[o->memory[k]];
    return &v->m->memory[memory];
}

static bool check_alignment(struct site *s, int o) {
    struct verify *v = s->v;
    const struct operand *op = &v->m->instr[s->n->instr].operand[o];
    const struct memory *m = named_memory(v, op, s->at[o].memory);
    enum pass pass = op->has_pass ? op->pass : m->pass;
    struct mexpr_env env = site_env(s);
    int64_t align = m->align > 0 ? m->align : 1;
    if (op->align && !mexpr_integer(op->align, &env, &align, NULL))
        return verify_error(v, "the alignment of operand '%s' cannot be evaluated", op->buffer);
    bool words = pass != PASS_POINTER || m->word > (int64_t)type_size(op->type);
    if (align > 0 && s->at[o].address % align != 0)
        return verify_error(
            v, "operand '%s' is at byte %" PRId64 " of memory '%s', not a multiple of %" PRId64,
            op->buffer, s->at[o].address, m->id, align);
    if (!op->align && words && m->word > 0 && s->at[o].address % m->word != 0)
        return verify_error(
            v, "operand '%s' is at byte %" PRId64 " of memory '%s', inside a word of %" PRId64,
            op->buffer, s->at[o].address, m->id, m->word);
    if (s->at[o].address % v->granule[s->at[o].memory] != 0)
        return verify_error(v,
                            "operand '%s' is at byte %" PRId64 " of memory '%s', inside an element",
                            op->buffer, s->at[o].address, m->id);
    return true;
}

static bool check_bounds(struct site *s, int o) {
    struct verify *v = s->v;
    const struct place *p = &v->s->place[s->n->arg[o].place];
    const struct shape_operand *h = &s->h->operand[o];
    int64_t slot = *slot_of(v, s->n->arg[o].place),
            start = p->address + (slot ? slot - 1 : 0) * p->bytes;
    if (h->nruns == 0) return true;
    int64_t low = s->at[o].address + h->low - start, high = s->at[o].address + h->high - start;
    if (h->swizzle.bits) { /* stays inside pieces of that size */
        int64_t piece = INT64_C(1) << (h->swizzle.base + h->swizzle.bits);
        low = (low + start) / piece * piece - start;
        high = (high + start + piece - 1) / piece * piece - start;
    }
    if (low >= 0 && high <= p->bytes) return true;
    return verify_error(
        v,
        "operand '%s' touches bytes %" PRId64 " to %" PRId64 " of place '%s', which has %" PRId64,
        v->m->instr[s->n->instr].operand[o].buffer, low, high - 1, p->name, p->bytes);
}

static bool check_sizes(struct verify *v, const struct instr *in, const int64_t *size) {
    for (int k = 0; k < in->nranged; k++) {
        int64_t lo, hi, step;
        if (!instr_size_range(v->m, in, k, &lo, &hi, &step)) continue;
        if (size[k] >= lo && (hi < 0 || size[k] <= hi) && (size[k] - lo) % step == 0) continue;
        const char *name = in->semantics->param[in->ranged[k]].name;
        if (hi < 0)
            return verify_error(v, "size %s is %" PRId64 ", expected %" PRId64 " or more", name,
                                size[k], lo);
        return verify_error(
            v, "size %s is %" PRId64 ", expected %" PRId64 " to %" PRId64 " in steps of %" PRId64,
            name, size[k], lo, hi, step);
    }
    return true;
}

static bool check_flags(struct verify *v, const int64_t *flag, int n) {
    for (int k = 0; k < n; k++)
        if (flag[k] != 0 && flag[k] != 1)
            return verify_error(v, "an accumulate flag is %" PRId64 ", expected 0 or 1", flag[k]);
    return true;
}

/* ---- the walk ---- */
static bool in_reach(int64_t address) {
    return address >= 0 && address < INT64_C(1) << 48;
}

static bool locate(struct verify *v, const struct issue_node *n, const struct instr *in,
                   struct place_at *at) {
    for (int o = 0; o < in->noperands; o++) {
        if (n->arg[o].place < 0) continue;
        const struct place *p = &v->s->place[n->arg[o].place];
        int slot = *slot_of(v, n->arg[o].place);
        int64_t offset = sx_eval(n->arg[o].offset, v->var);
        at[o].memory = p->memory;
        at[o].instance = (int)verify_instance(v, v->m->memory[p->memory].unit);
        at[o].address = p->address + (slot ? slot - 1 : 0) * p->bytes;
        if (offset > -(INT64_C(1) << 48) && offset < INT64_C(1) << 48)
            at[o].address += offset;
        else
            at[o].address = -1;
        if (!in_reach(at[o].address))
            return verify_error(v, "operand '%s' is outside its memory", in->operand[o].buffer);
    }
    return true;
}

/* Swizzled bytes are elsewhere, piece by piece. */
static void run_races(struct verify *v, int qi, struct place_at at, const struct run *run,
                      struct swizzle swizzle, bool write) {
    int64_t address = at.address + run->at, end = address + run->bytes;
    at.instance += run->instance;
    while (address < end && !v->stop) {
        int64_t piece = INT64_C(1) << swizzle.base, n = end - address;
        if (swizzle.bits && n > piece - address % piece) n = piece - address % piece;
        at.address = swizzle_address(swizzle, address);
        race_access(v, qi, at, n, write);
        address += n;
    }
}

static void issue_races(struct site *s) {
    struct verify *v = s->v;
    const struct issue_node *n = s->n;
    const struct shape *h = s->h;
    const struct instr *in = &v->m->instr[n->instr];
    int qi = race_queue(v, in->queue, in->unit), who = qi;
    bool overwrites = h->dst_operand >= 0 && h->stmt && h->stmt->combine != COMBINE_SET;
    bool off = false;
    if (!v->in_entry) race_begin(v, qi, &n->signals);
    if (in->completes >= 0) who = race_start_behind(v, qi, in->completes);
    for (int k = 0; k < instr_flag_count(in); k++)
        off |= instr_flag_operand(in, k) == h->dst_operand && s->flag[k] == 0;
    state_races(s, qi);
    for (int write = 0; write < 2; write++)
        for (int o = 0; o < in->noperands; o++) {
            const struct shape_operand *p = &h->operand[o];
            bool touches =
                write ? p->writes : p->reads && !(overwrites && off && o == h->dst_operand);
            for (int k = 0; touches && n->arg[o].place >= 0 && k < p->nruns && !v->stop; k++)
                run_races(v, who, s->at[o], &p->run[k], p->swizzle, write);
        }
    state_remains_races(s, qi);
    if (!v->in_entry) race_push(v, qi, &n->signals);
}

static void walk_issue(struct verify *v, const struct issue_node *n) {
    const struct instr *in = &v->m->instr[n->instr];
    int nflags = instr_flag_count(in);
    int64_t size[64], stride[64], flag[64];
    struct place_at at[MAX_OPERANDS_OF_ISSUE] = {{0}};
    if (in->nranged > 64 || in->nstride_names > 64 || nflags > 64) {
        verify_limit(v, "'%s' has too many sizes to verify", in->id);
        return;
    }
    for (int k = 0; k < in->nranged; k++) size[k] = sx_eval(n->size[k], v->var);
    for (int k = 0; k < in->nstride_names; k++) stride[k] = sx_eval(n->stride[k], v->var);
    for (int k = 0; k < nflags; k++) flag[k] = sx_eval(n->flag[k], v->var);
    if (!check_sizes(v, in, size) || !check_flags(v, flag, nflags)) return;
    const struct shape *h = shape_get(v, n, size, stride);
    if (!h || !locate(v, n, in, at) || !verify_step(v, h->cost)) return;
    struct site site = {v, n, h, size, stride, flag, at};
    for (int o = 0; o < in->noperands; o++)
        if (n->arg[o].place >= 0 && (!check_alignment(&site, o) || !check_bounds(&site, o))) return;
    if (v->counting && (!check_requires(&site) || !state_needs(&site))) return;
    content_issue(v, n, h, at, flag);
    if (!v->counting && !v->stop) state_remains(&site);
    if (!v->counting && !v->stop) issue_races(&site);
}

static void walk_fallback(struct verify *v, const struct fallback_node *n) {
    int64_t lo[MAX_AXES] = {0}, hi[MAX_AXES] = {0};
    for (int a = 0; a < v->p->naxes; a++) {
        bool has = v->domain[n->stmt] >> a & 1, ranged = n->lo && n->lo[a];
        lo[a] = !has ? 0 : ranged ? sx_eval(n->lo[a], v->var) : 0;
        hi[a] = !has ? 1 : ranged ? sx_eval(n->hi[a], v->var) : v->p->axis[a].extent;
        if (lo[a] >= 0 && hi[a] <= (has ? v->p->axis[a].extent : 1)) continue;
        verify_error(v, "axis '%s' runs from %" PRId64 " to %" PRId64 ", its extent is %" PRId64,
                     v->p->axis[a].name, lo[a], hi[a], v->p->axis[a].extent);
        return;
    }
    content_fallback(v, n, lo, hi);
}

static void walk_nodes(struct verify *v, const struct node *node, int n);

static uint64_t iterations(int64_t lo, int64_t hi, int64_t step) {
    return hi <= lo ? 0 : ((uint64_t)hi - (uint64_t)lo - 1) / (uint64_t)step + 1;
}

/* Instance s takes the iterations from n·s/count to n·(s+1)/count. */
static int64_t share_of(uint64_t k, uint64_t n, uint64_t count) {
    return (int64_t)((((unsigned __int128)k + 1) * count - 1) / n);
}

/* Iteration k of n, or the last instead where loops are cut short; false: none is left to walk. */
static bool enter_iteration(struct verify *v, const struct loop_node *l, int64_t lo, uint64_t n,
                            uint64_t *k) {
    uint64_t trips = (uint64_t)loop_trips(v, l);
    if (trips && n > trips && *k + 1 == (trips > 1 ? trips : 2)) {
        v->clamped = true;
        if (trips == 1) return false;
        *k = n - 1;
    }
    v->var[l->var] = (int64_t)((uint64_t)lo + *k * (uint64_t)l->step);
    v->live[l->var] = true;
    return true;
}

/* Over the instances of a unit: none knows what another does. Virtual units have one for each
 * iteration. */
static void walk_parallel(struct verify *v, const struct loop_node *l, int64_t lo, uint64_t n) {
    bool is_virtual = v->m->unit[l->unit].is_virtual, out = v->shared[l->unit];
    uint64_t count = is_virtual ? n : (uint64_t)unit_instances(v->m, l->unit);
    uint64_t trips = (uint64_t)loop_trips(v, l);
    uint32_t begin[MAX_QUEUES];
    const uint32_t *around = v->begin;
    if (count > n) count = n;
    if (is_virtual && count > VIRTUAL_INSTANCES && !trips) {
        verify_limit(v, "more than %d instances of unit '%s' cannot be verified whole",
                     VIRTUAL_INSTANCES, v->m->unit[l->unit].id);
        return;
    }
    if (!v->counting) race_barrier(v);
    memcpy(begin, v->at_barrier, sizeof begin);
    if (is_virtual) v->begin = begin;
    v->shared[l->unit] = true;
    v->nshared++;
    for (uint64_t k = 0; k < n && verify_step(v, 1); k++) {
        if (!enter_iteration(v, l, lo, n, &k)) break;
        v->inst[l->unit] = share_of(k, n, count);
        if (is_virtual && v->inst[l->unit] >= VIRTUAL_INSTANCES) /* the last */
            v->inst[l->unit] = VIRTUAL_INSTANCES - 1;
        memcpy(v->at_barrier, begin, sizeof begin);
        uint16_t outside = is_virtual ? race_enter(v) : v->generation;
        walk_nodes(v, l->body, l->nbody);
        if (is_virtual) race_leave(v, outside);
        v->live[l->var] = false;
    }
    v->begin = around;
    v->inst[l->unit] = 0;
    v->shared[l->unit] = out;
    v->nshared--;
    if (!v->counting) race_barrier(v);
}

static void walk_iterations(struct verify *v, const struct loop_node *l) {
    int64_t lo = sx_eval(l->lo, v->var), hi = sx_eval(l->hi, v->var);
    uint64_t n = iterations(lo, hi, l->step);
    if (l->kind == LOOP_PARALLEL) {
        walk_parallel(v, l, lo, n);
        return;
    }
    for (uint64_t k = 0; k < n && verify_step(v, 1); k++) {
        if (!enter_iteration(v, l, lo, n, &k)) break;
        walk_nodes(v, l->body, l->nbody);
        v->live[l->var] = false;
    }
}

/* Hardware loops and their issue are one entry of the queue: its pops come before the first
 * iteration, its pushes after the last. */
static void walk_hardware(struct verify *v, const struct loop_node *l) {
    struct hardware h;
    hardware_issue(v->m, l, &h);
    for (int k = 0; k < h.nloops; k++) {
        uint64_t n = iterations(sx_eval(h.loop[k]->lo, v->var), sx_eval(h.loop[k]->hi, v->var),
                                h.loop[k]->step);
        if (n >= 1 && n <= (uint64_t)h.counter[k]->max) continue;
        verify_error(v, "a hardware loop runs %" PRIu64 " times, loop '%s' of '%s' 1 to %" PRId64,
                     n, h.counter[k]->id, v->m->instr[h.issue->instr].id, h.counter[k]->max);
        return;
    }
    const struct instr *in = &v->m->instr[h.issue->instr];
    int qi = v->counting ? 0 : race_queue(v, in->queue, in->unit);
    if (!v->counting) race_begin(v, qi, &h.issue->signals);
    if (h.table >= 0) {
        const struct loop_node *u = h.loop[h.table];
        uint64_t n = iterations(sx_eval(u->lo, v->var), sx_eval(u->hi, v->var), u->step);
        if (!table_walk(v, &h, (int64_t)n, qi)) return;
    }
    v->in_entry = true;
    walk_iterations(v, l);
    v->in_entry = false;
    if (!v->counting) race_push(v, qi, &h.issue->signals);
}

static void walk_loop(struct verify *v, const struct loop_node *l) {
    if (l->kind == LOOP_HARDWARE && !v->in_entry)
        walk_hardware(v, l);
    else
        walk_iterations(v, l);
}

static void walk_sync(struct verify *v, int queue, const struct signals *g) {
    if (v->counting) return;
    int qi = race_queue(v, queue, -1);
    race_begin(v, qi, g);
    race_push(v, qi, g);
}

static void walk_nodes(struct verify *v, const struct node *node, int n) {
    for (int k = 0; k < n && verify_step(v, 1); k++) {
        v->node = &node[k];
        switch (node[k].kind) {
        case NODE_LOOP:
            walk_loop(v, node[k].loop);
            break;
        case NODE_ISSUE:
            walk_issue(v, node[k].issue);
            break;
        case NODE_FALLBACK:
            walk_fallback(v, node[k].fallback);
            break;
        case NODE_ROTATE: {
            int *slot = slot_of(v, node[k].rotate);
            *slot = *slot % v->s->place[node[k].rotate].slots + 1;
            break;
        }
        case NODE_SYNC:
            walk_sync(v, node[k].sync.queue, &node[k].sync.signals);
            break;
        case NODE_CONFIGURE:
            state_configure(v, node[k].configure);
            break;
        }
    }
}

/* Homes with padding are zeroed before the first node that uses them. */
static void zero_homes(struct verify *v, const struct section *c, int n) {
    const struct schedule *s = v->s;
    for (int p = 0; p < s->nplaces; p++) {
        if (s->place[p].keep != (v->prepare ? KEEP_PREPARED : KEEP_WORKSPACE) ||
            !schedule_pads(s, p) || !verify_node_uses(s, &c->node[n], p))
            continue;
        bool before = false;
        for (int k = 0; k < n; k++) before |= verify_node_uses(s, &c->node[k], p);
        if (!before) tags_zero_place(v, p);
    }
}

static void walk_section(struct verify *v, const struct section *c, bool prepare) {
    v->prepare = prepare;
    state_forget(v);
    pages_free(&v->slots);
    for (int n = 0; n < c->nnodes && !v->stop; n++) {
        if (!v->counting) zero_homes(v, c, n);
        walk_nodes(v, &c->node[n], 1);
    }
    v->node = NULL;
    if (!v->counting && !v->stop) race_section_end(v);
}

/* ---- tables ---- */
static bool in_nodes(const struct schedule *s, const struct section *c, int place) {
    for (int k = 0; k < c->nnodes; k++)
        if (verify_node_uses(s, &c->node[k], place)) return true;
    return false;
}

/* Copies of its elements are all there is of such a temporary. */
static bool never_home(const struct verify *v, int buffer) {
    int home = schedule_home(v->s, buffer);
    if (v->p->buffer[buffer].role != ROLE_TEMP || v->loose[buffer]) return false;
    for (int k = 0; k < v->written[buffer].n; k++)
        if (v->recurrence_of[v->order[v->written[buffer].at[k]]] >= 0) return false;
    return home < 0 || (!in_nodes(v->s, &v->s->prepare, home) && !in_nodes(v->s, &v->s->run, home));
}

static bool fill_tables(struct verify *v) {
    const struct program *p = v->p;
    size_t ns = (size_t)p->nstmts, nb = (size_t)p->nbuffers;
    struct arena *a = &v->arena;
    if (nb > 4000 || ns > 30000)
        return verify_limit(v, "the program has too many buffers or statements to verify");
    v->domain = arena_array(a, ns + 1, sizeof *v->domain);
    v->loose_stmt = arena_array(a, ns + 1, sizeof *v->loose_stmt);
    v->skipped = arena_array(a, ns + 1, sizeof *v->skipped);
    v->done = arena_array(a, ns + 1, sizeof *v->done);
    v->nvisited = arena_array(a, ns * (size_t)p->naxes + 1, sizeof *v->nvisited);
    v->loose = arena_array(a, nb + 1, sizeof *v->loose);
    v->may_repeat = arena_array(a, nb + 1, sizeof *v->may_repeat);
    v->repeats = arena_array(a, nb + 1, sizeof *v->repeats);
    if (!steps_tables(v)) return false;
    for (size_t b = 0; b < nb; b++) v->may_repeat[b] = never_home(v, (int)b);
    for (size_t s = 0; s < ns; s++) {
        int64_t points = 1;
        for (int k = 0; k < p->naxes; k++)
            if (v->domain[s] >> k & 1 &&
                (__builtin_mul_overflow(points, p->axis[k].extent, &points) || points >= INT64_C(1)
                                                                                             << 50))
                return verify_limit(v, "statement %zu has too many instances to verify", s);
    }
    return true;
}

static void shrink(int *granule, int64_t to) {
    while (*granule > 1 && to % *granule != 0) *granule /= 2;
}

static void granules_of_nodes(struct verify *v, const struct node *node, int n) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP)
            granules_of_nodes(v, node[k].loop->body, node[k].loop->nbody);
        if (node[k].kind == NODE_LOOP && node[k].loop->kind == LOOP_PARALLEL)
            v->races_matter = true;
        if (node[k].kind != NODE_ISSUE) continue;
        const struct issue_node *i = node[k].issue;
        const struct instr *in = &v->m->instr[i->instr];
        for (int o = 0; o < in->noperands; o++) {
            int64_t size = (int64_t)type_size(in->operand[o].type);
            if (i->arg[o].place >= 0)
                shrink(&v->granule[v->s->place[i->arg[o].place].memory], size);
            if (in->operand[o].also >= 0) shrink(&v->granule[in->operand[o].also], size);
        }
    }
}

static void fill_granules(struct verify *v) {
    const struct schedule *s = v->s;
    for (int m = 0; m < v->m->nmemories; m++) v->granule[m] = 8;
    for (int p = 0; p < s->nplaces; p++) {
        int *g = &v->granule[s->place[p].memory];
        shrink(g, (int64_t)type_size(v->p->buffer[s->place[p].buffer].type));
        shrink(g, s->place[p].address);
        if (s->place[p].slots > 1) shrink(g, s->place[p].bytes);
    }
    granules_of_nodes(v, s->prepare.node, s->prepare.nnodes);
    granules_of_nodes(v, s->run.node, s->run.nnodes);
    for (int m = 0; m < v->m->nmemories; m++) {
        int64_t word = v->m->memory[m].word;
        v->word[m] = word > v->granule[m] && word < 1 << 20 ? (int)word : v->granule[m];
    }
    for (int k = 0; k < v->m->nstates; k++) v->word[v->m->nmemories + k] = 1;
}

static void open_tables(struct verify *v) {
    arena_init(&v->arena);
    v->nbuckets = 1024;
    v->shape = arena_array(&v->arena, (size_t)v->nbuckets, sizeof *v->shape);
    v->var = arena_array(&v->arena, (size_t)v->s->nvars + 1, sizeof *v->var);
    v->live = arena_array(&v->arena, (size_t)v->s->nvars + 1, sizeof *v->live);
    v->inst = arena_array(&v->arena, (size_t)v->m->nunits + 1, sizeof *v->inst);
    v->shared = arena_array(&v->arena, (size_t)v->m->nunits + 1, sizeof *v->shared);
    v->granule = arena_array(&v->arena, (size_t)v->m->nmemories + 1, sizeof *v->granule);
    v->word =
        arena_array(&v->arena, (size_t)(v->m->nmemories + v->m->nstates) + 1, sizeof *v->word);
    pages_init(&v->slots, sizeof(int), &v->page_bytes);
    pages_init(&v->tags, PAGE_ENTRIES * sizeof(struct tag), &v->page_bytes);
    pages_init(&v->counts, PAGE_ENTRIES * sizeof(uint32_t), &v->page_bytes);
    pages_init(&v->instances, PAGE_ENTRIES, &v->page_bytes);
    pages_init(&v->races, PAGE_ENTRIES * sizeof(struct granule), &v->page_bytes);
    pages_init(&v->visited, PAGE_ENTRIES, &v->page_bytes);
    pages_init(&v->life, PAGE_ENTRIES * sizeof(uint32_t), &v->page_bytes);
}

static void close_tables(struct verify *v) {
    race_tokens_free(v);
    for (int k = 0; k < v->nbuckets; k++)
        for (struct shape *h = v->shape[k]; h; h = h->next)
            if (h->bound) program_free(h->bound);
    pages_free(&v->slots);
    pages_free(&v->tags);
    pages_free(&v->counts);
    pages_free(&v->instances);
    pages_free(&v->races);
    pages_free(&v->visited);
    pages_free(&v->life);
    arena_free(&v->arena);
}

static void walk_all(struct verify *v, bool counting) {
    v->counting = counting;
    walk_section(v, &v->s->prepare, true);
    if (!v->stop) walk_section(v, &v->s->run, false);
    if (v->stop) return;
    content_end(v);
    if (!counting || !v->clamped) return;
    verify_visited(v);
    verify_totals(v);
}

/* A limit is an error for who wants a verdict. */
static bool verdict(struct verify *v) {
    if (v->limit.n)
        diag_line(v->diags, v->s->program->name, 0, 0, "the verifier gave up: %s", v->limit.at);
    bool good = v->errors == 0 && !v->limit.n;
    text_free(&v->limit);
    return good;
}

bool schedule_check(const struct schedule *s, struct diags *diags) {
    struct verify v = {
        .s = s, .m = s->machine, .p = s->program, .diags = diags, .steps = DEFAULT_STEPS};
    open_tables(&v);
    bool good = fill_tables(&v) && verify_structure(&v);
    close_tables(&v);
    return verdict(&v) && good;
}

/* Walks with the sizes that are known only when the program runs at `length`, as far as their
 * ranges allow. */
static void verify_at(struct verify *v, int64_t length) {
    open_tables(v);
    for (int k = 0; k < v->p->nsizes; k++) {
        v->var[k] = size_within(&v->p->size[k], length);
        v->live[k] = true;
    }
    if (fill_tables(v) && verify_structure(v)) {
        access_tables(v);
        fill_granules(v);
        limit_trips(v);
        race_init(v);
        walk_all(v, true);
        if (!v->stop && v->errors == 0) walk_all(v, false);
    }
    for (int b = 0; b < v->p->nbuffers && v->loose && !v->limit.n; b++)
        v->follows_all &= !v->loose[b];
    close_tables(v);
}

static bool verify_length(const struct schedule *s, const struct program *p,
                          const struct verify_options *options, int64_t length,
                          struct diags *diags) {
    struct verify v = {.s = s, .m = s->machine, .p = p, .diags = diags};
    v.trips = options && options->trips > 0 ? options->trips : 0;
    v.steps = options && options->steps > 0 ? options->steps : DEFAULT_STEPS;
    verify_at(&v, length);
    return verdict(&v);
}

static int64_t most_slots(const struct schedule *s) {
    int64_t most = 1;
    for (int p = 0; p < s->nplaces; p++)
        if (s->place[p].slots > most) most = s->place[p].slots;
    return most < MOST_SLOTS ? most : MOST_SLOTS;
}

static struct program *program_of_length(const struct program *p, int64_t length) {
    int64_t *size = memory_array((size_t)p->nsizes, sizeof *size);
    for (int i = 0; i < p->nsizes; i++) size[i] = size_within(&p->size[i], length);
    struct program *at = program_at(p, size);
    free(size);
    return at;
}

enum { LENGTHS = 5 };
static int64_t length_number(const struct schedule *s, int k) {
    return k < LENGTHS - 1 ? k : most_slots(s) + 3;
}

/* The head of a recurrence is a fixed point: what holds after a few steps, in whatever phase the
 * slots are, holds after any (SCHEDULING §6). So lengths of 0 to 3 and of slots + 3 stand for all.
 */
static bool verify_lengths(const struct schedule *s, const struct verify_options *options,
                           struct diags *diags) {
    bool good = true;
    for (int k = 0; k < LENGTHS && good; k++) {
        struct program *at = program_of_length(s->program, length_number(s, k));
        good = verify_length(s, at, options, length_number(s, k), diags);
        program_free(at);
    }
    return good;
}

bool schedule_verify(const struct schedule *s, const struct verify_options *options,
                     struct diags *diags) {
    return s->program->nsizes > 0 ? verify_lengths(s, options, diags)
                                  : verify_length(s, s->program, options, 0, diags);
}

/* ---- proofs ---- */
static const int64_t PROOF_STEPS = 2000000;

const char *const proof_name[] = {
    [PROOF_UNCHECKED] = "unchecked",
    [PROOF_PROVED] = "proved",
    [PROOF_UNPROVED] = "unproved",
    [PROOF_REFUSED] = "refused",
};

static enum proof unproved(struct text *reason, const char *why) {
    text_printf(reason, "%s", why);
    return PROOF_UNPROVED;
}

/* With the sizes that the program leaves open at `length`. */
static enum proof prove_length(const struct schedule *s, const struct program *p, int64_t length,
                               int64_t *steps, struct text *reason, struct diags *diags) {
    struct verify v = {.s = s,
                       .m = s->machine,
                       .p = p,
                       .diags = diags,
                       .steps = *steps,
                       .follows_all = true};
    verify_at(&v, length);
    *steps = v.steps;
    enum proof proof = v.errors ? PROOF_REFUSED : PROOF_PROVED;
    if (proof == PROOF_PROVED && v.limit.n)
        proof = unproved(reason, v.limit.at);
    else if (proof == PROOF_PROVED && !v.follows_all)
        proof = unproved(reason, "what calls write is not followed");
    text_free(&v.limit);
    return proof;
}

enum proof schedule_prove(const struct schedule *s, int64_t steps, struct text *reason,
                          struct diags *diags) {
    if (steps <= 0) steps = PROOF_STEPS;
    if (s->program->nsizes == 0) return prove_length(s, s->program, 0, &steps, reason, diags);
    for (int k = 0; k < LENGTHS; k++) {
        struct program *at = program_of_length(s->program, length_number(s, k));
        enum proof proof = prove_length(s, at, length_number(s, k), &steps, reason, diags);
        program_free(at);
        if (proof != PROOF_PROVED) return proof;
    }
    return unproved(reason, "a size is open, of which some values were walked");
}
