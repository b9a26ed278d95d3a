#include "scheduler/verify/verify_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const int64_t DEFAULT_STEPS = 1000000000, MOST_SLOTS = 5;

/* ---- the walk ---- */
static bool in_reach(int64_t address) {
    return address >= 0 && address < INT64_C(1) << 48;
}

static bool locate(struct verify *v, const struct issue_node *n, const struct instr *in,
                   struct place_at *at) {
    for (int o = 0; o < in->noperands; o++) {
        if (n->arg[o].place < 0) continue;
        const struct place *p = &v->s->place[n->arg[o].place];
        int64_t slot = verify_slot(v, n->arg[o].place);
        int64_t offset = sx_eval(n->arg[o].offset, v->var);
        at[o].memory = p->memory;
        at[o].instance = (int)verify_instance(v, v->m->memory[p->memory].unit);
        at[o].address = p->address + slot * p->bytes;
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
    if (!site_check_sizes(v, in, size) || !site_check_flags(v, flag, nflags)) return;
    const struct shape *h = shape_get(v, n, size, stride);
    if (!h || !locate(v, n, in, at) || !verify_step(v, h->cost)) return;
    struct site site = {v, n, h, size, stride, flag, at};
    for (int o = 0; o < in->noperands; o++)
        if (n->arg[o].place >= 0 &&
            (!site_check_alignment(&site, o) || !site_check_bounds(&site, o)))
            return;
    if (v->counting && (!site_check_requires(&site) || !state_needs(&site))) return;
    content_issue(v, n, h, at, flag);
    if (!v->counting && !v->stop) state_remains(&site);
    if (!v->counting && !v->stop) issue_races(&site);
}

static void walk_fallback(struct verify *v, const struct fallback_node *n) {
    int64_t lo[MAX_AXES] = {0}, hi[MAX_AXES] = {0};
    for (int a = 0; a < v->p->naxes; a++) {
        bool has = v->domain[n->stmt] >> a & 1, ranged = n->lo && n->lo[a];
        int64_t first = has ? v->p->axis[a].first : 0;
        lo[a] = ranged && has ? sx_eval(n->lo[a], v->var) : first;
        hi[a] = !has ? 1 : ranged ? sx_eval(n->hi[a], v->var) : v->p->axis[a].extent;
        if (lo[a] >= first && hi[a] <= (has ? v->p->axis[a].extent : 1)) continue;
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
        case NODE_ROTATE:
            verify_rotate(v, node[k].rotate);
            break;
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
static void zero_homes(struct verify *v, int n) {
    const struct schedule *s = v->s;
    for (int p = 0; p < s->nplaces; p++) {
        bool here = s->place[p].keep == (v->prepare ? KEEP_PREPARED : KEEP_WORKSPACE);
        if (here && uses_first(v, v->prepare, p) == n && schedule_pads(s, p)) tags_zero_place(v, p);
    }
}

static void walk_section(struct verify *v, const struct section *c, bool prepare) {
    v->prepare = prepare;
    state_forget(v);
    pages_free(&v->slots);
    for (int n = 0; n < c->nnodes && !v->stop; n++) {
        if (!v->counting) zero_homes(v, n);
        walk_nodes(v, &c->node[n], 1);
    }
    v->node = NULL;
    if (!v->counting && !v->stop) race_section_end(v);
}

/* ---- tables ---- */
/* Copies of its elements are all there is of such a temporary. */
static bool never_home(const struct verify *v, int buffer) {
    int home = v->home[buffer];
    if (v->p->buffer[buffer].role != ROLE_TEMP || v->loose[buffer]) return false;
    for (int k = 0; k < v->written[buffer].n; k++)
        if (v->recurrence_of[v->order[v->written[buffer].at[k]]] >= 0) return false;
    return home < 0 || (uses_first(v, true, home) < 0 && uses_first(v, false, home) < 0);
}

static bool moves_result(const struct program *p, const struct stmt *s, int axis) {
    for (int d = 0; d < p->buffer[s->dst.buffer].ndims; d++)
        if (s->dst.coef[(size_t)d * ((size_t)p->naxes + 1) + (size_t)axis]) return true;
    return false;
}

/* A sum runs through the axes that are declared with seq in order, whatever the others are. That
 * shows where it reads itself, and where it rounds. Steps of recurrences are in order anyway: tags
 * say of which one an element is. */
static uint64_t axes_in_order(const struct verify *v, int stmt) {
    const struct program *p = v->p;
    const struct stmt *s = &p->stmt[stmt];
    bool rounds = s->combine == COMBINE_ADD || s->combine == COMBINE_MUL;
    bool shows = rounds && type_is_float(p->buffer[s->dst.buffer].type);
    uint64_t axes = 0;
    for (int r = 0; r < s->nreads; r++) shows |= s->read[r].buffer == s->dst.buffer;
    if (s->combine == COMBINE_SET || !shows) return 0;
    for (int a = 0; a < p->naxes; a++)
        if (s->axes >> a & 1 && p->axis[a].sequential && p->axis[a].extent > 1 &&
            !moves_result(p, s, a))
            axes |= UINT64_C(1) << a;
    for (int k = v->recurrence_of[stmt]; k >= 0; k = v->recurrence[k].parent)
        axes &= ~(UINT64_C(1) << v->recurrence[k].axis);
    return axes;
}

bool verify_fill_tables(struct verify *v) {
    const struct program *p = v->p;
    size_t ns = (size_t)p->nstmts, nb = (size_t)p->nbuffers;
    struct arena *a = &v->arena;
    if (nb >> (64 - ELEMENT_BITS) || ns >= INT16_MAX) /* parts of a tag (verify_int.h) */
        return verify_limit(v, "the program has too many buffers or statements to verify");
    v->domain = arena_array(a, ns + 1, sizeof *v->domain);
    v->loose_stmt = arena_array(a, ns + 1, sizeof *v->loose_stmt);
    v->skipped = arena_array(a, ns + 1, sizeof *v->skipped);
    v->home_stride = arena_array(a, (size_t)v->s->nplaces + 1, sizeof *v->home_stride);
    v->done = arena_array(a, ns + 1, sizeof *v->done);
    v->in_order = arena_array(a, ns + 1, sizeof *v->in_order);
    v->nvisited = arena_array(a, ns * (size_t)p->naxes + 1, sizeof *v->nvisited);
    v->loose = arena_array(a, nb + 1, sizeof *v->loose);
    v->may_repeat = arena_array(a, nb + 1, sizeof *v->may_repeat);
    v->repeats = arena_array(a, nb + 1, sizeof *v->repeats);
    uses_tables(v);
    if (!steps_tables(v)) return false;
    for (size_t k = 0; k < ns; k++) v->in_order[k] = axes_in_order(v, (int)k);
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

void verify_fill_granules(struct verify *v) {
    const struct schedule *s = v->s;
    verify_rename_swizzled(v);
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

void verify_open_tables(struct verify *v) {
    arena_init(&v->arena);
    if (!v->shapes) verify_shapes_open(v->shapes = &v->own_shapes);
    v->ranges = arena_array(&v->arena, (size_t)v->m->ninstrs + 1, sizeof *v->ranges);
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
    pages_init(&v->last, PAGE_ENTRIES * sizeof(struct last_point), &v->page_bytes);
}

void verify_close_tables(struct verify *v) {
    race_tokens_free(v);
    if (v->shapes == &v->own_shapes) verify_shapes_close(v->shapes);
    pages_free(&v->slots);
    pages_free(&v->tags);
    pages_free(&v->counts);
    pages_free(&v->instances);
    pages_free(&v->races);
    pages_free(&v->visited);
    pages_free(&v->life);
    pages_free(&v->last);
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

/* Walks with the sizes that are known only when the program runs at these values. */
void verify_at(struct verify *v, const int64_t *size) {
    verify_open_tables(v);
    for (int k = 0; k < v->p->nsizes; k++) {
        v->var[k] = size[k];
        v->live[k] = true;
    }
    if (verify_fill_tables(v) && verify_structure(v)) {
        access_tables(v);
        verify_fill_granules(v);
        limit_trips(v);
        race_init(v);
        walk_all(v, true);
        if (!v->stop && v->errors == 0) walk_all(v, false);
    }
    for (int b = 0; b < v->p->nbuffers && v->loose && !v->limit.n; b++)
        v->follows_all &= !v->loose[b];
    verify_close_tables(v);
}

static bool verify_sizes(const struct schedule *s, const struct program *p,
                         const struct verify_options *options, const int64_t *size,
                         struct diags *diags) {
    struct verify v = {.s = s, .m = s->machine, .p = p, .diags = diags};
    v.trips = options && options->trips > 0 ? options->trips : 0;
    v.steps = options && options->steps > 0 ? options->steps : DEFAULT_STEPS;
    verify_at(&v, size);
    return verdict(&v);
}

int64_t verify_most_slots(const struct schedule *s) {
    int64_t most = 1;
    for (int p = 0; p < s->nplaces; p++)
        if (s->place[p].slots > most) most = s->place[p].slots;
    return most < MOST_SLOTS ? most : MOST_SLOTS;
}

int64_t size_group(const struct program *p, int size) {
    int64_t group = 1;
    for (int a = 0; a < p->naxes; a++) {
        int64_t g = p->axis[a].size == size + 1 && p->axis[a].group ? p->axis[a].group : 1,
                all = group;
        while (all % g) all += group;
        group = all;
    }
    return group;
}

int64_t *verify_length(const struct schedule *s, int k) {
    const struct program *p = s->program;
    int64_t *size = memory_array((size_t)p->nsizes + 1, sizeof *size);
    int64_t most = verify_most_slots(s) + 3;
    for (int i = 0; i < p->nsizes; i++) {
        int64_t group = size_group(p, i);
        size[i] = size_within(&p->size[i], k < VERIFY_LENGTHS - 1 ? k : most * group + group / 2);
    }
    return size;
}

/* The head of a recurrence is a fixed point: what holds after a few steps, in whatever phase the
 * slots are, holds after any (SCHEDULING §6). So lengths of 0 to 3 and of slots + 3, in groups if
 * steps are counted so, stand for all. */
static bool verify_lengths(const struct schedule *s, const struct verify_options *options,
                           struct diags *diags) {
    bool good = true;
    for (int k = 0; k < VERIFY_LENGTHS && good; k++) {
        int64_t *size = verify_length(s, k);
        struct program *at = program_at(s->program, size);
        good = verify_sizes(s, at, options, size, diags);
        program_free(at);
        free(size);
    }
    return good;
}

bool schedule_verify(const struct schedule *s, const struct verify_options *options,
                     struct diags *diags) {
    return s->program->nsizes > 0 ? verify_lengths(s, options, diags)
                                  : verify_sizes(s, s->program, options, NULL, diags);
}
