/* Steps of a schedule become words. */
#include "backends/bits/bits_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 1 << 26 };

struct bits_encoder {
    struct arena arena;
    const struct schedule *schedule;
    const struct machine *machine;
    struct diags *diags;
    int64_t home;
    struct forms forms;
    uint8_t *stream;
    int64_t bytes, room;
    struct bits_line *line;
    int nlines, cap_lines, steps;
    int64_t *value;        /* [nvars] */
    const int64_t *slot;   /* [nplaces] */
    int64_t **state;       /* [nstates][slots * fields]: what configures wrote */
    bool **is_set;         /* [nstates][slots] */
    int *pop, *push, *use; /* [nsyncs], [nsyncs], [nstates]: of the word being made */
};

static bool encode_error(struct bits_encoder *e, struct place_in_file at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static bool encode_error(struct bits_encoder *e, struct place_in_file at, const char *fmt, ...) {
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    diag_line(e->diags, at.file, at.line, 0, "%s", message);
    return false;
}

/* Of objects one is used at a time. */
static int64_t slots_used(const struct machine *m, int state) {
    int64_t n = state_slots(m, state);
    return n > 0 ? n : 1;
}

struct bits_encoder *bits_open(const struct schedule *s, int64_t home, struct diags *diags) {
    struct bits_encoder *e = memory_array(1, sizeof *e);
    const struct machine *m = s->machine;
    arena_init(&e->arena);
    e->schedule = s;
    e->machine = m;
    e->diags = diags;
    e->home = home;
    e->forms = forms_of(&e->arena, m);
    e->value = arena_array(&e->arena, (size_t)s->nvars + 1, sizeof *e->value);
    e->pop = arena_array(&e->arena, (size_t)m->nsyncs + 1, sizeof *e->pop);
    e->push = arena_array(&e->arena, (size_t)m->nsyncs + 1, sizeof *e->push);
    e->use = arena_array(&e->arena, (size_t)m->nstates + 1, sizeof *e->use);
    e->state = arena_array(&e->arena, (size_t)m->nstates + 1, sizeof *e->state);
    e->is_set = arena_array(&e->arena, (size_t)m->nstates + 1, sizeof *e->is_set);
    for (int k = 0; k < m->nstates; k++) {
        size_t slots = (size_t)slots_used(m, k);
        e->state[k] = arena_array(&e->arena, slots * (size_t)m->state[k].nfields + 1, 8);
        e->is_set[k] = arena_array(&e->arena, slots + 1, 1);
    }
    return e;
}

void bits_close(struct bits_encoder *e) {
    if (!e) return;
    free(e->stream);
    arena_free(&e->arena);
    free(e);
}

bool bits_pending(const struct bits_encoder *e) {
    return e->nlines > 0;
}

/* ---- words ---- */

static uint8_t *room_for(struct bits_encoder *e, int64_t bytes) {
    if (e->bytes + bytes > e->room) {
        e->room = 2 * (e->bytes + bytes) + 1024;
        e->stream = memory_grow(e->stream, (size_t)e->room);
    }
    memset(e->stream + e->bytes, 0, (size_t)bytes);
    return e->stream + e->bytes;
}

static bool add_words(struct bits_encoder *e, const struct form *f, const struct issued *x,
                      int queue, int node) {
    for (int k = 0; k < f->nwords; k++) {
        const struct bit_word *w = &f->word[k];
        if (w->address >= 0)
            return encode_error(e,
                                w->nfields ? w->field[0].field->place : (struct place_in_file){0},
                                "'%s' writes a register in the middle of a stream, expected that "
                                "in begin alone",
                                f->id);
        uint8_t *at = room_for(e, word_bytes(w));
        for (int i = 0; i < w->nfields; i++)
            if (!field_pack(&w->field[i], x, f->id, at, e->diags)) return false;
        if (e->nlines >= MAX_LINES)
            return encode_error(e, (struct place_in_file){e->machine->file, 0},
                                "the program has more than %d words", MAX_LINES);
        if (e->nlines == e->cap_lines) GROW(&e->arena, e->line, e->nlines, e->cap_lines);
        e->line[e->nlines++] = (struct bits_line){e->bytes, f->id, queue, node};
        e->bytes += word_bytes(w);
    }
    return true;
}

/* ---- signals ---- */

static void count(const struct bits_encoder *e, const struct signal *g, int n, int *of) {
    memset(of, 0, (size_t)e->machine->nsyncs * sizeof *of);
    for (int i = 0; i < n; i++) {
        const struct sync *s = &e->machine->sync[g[i].sync];
        if (s->kind != SYNC_INTERLOCK && !machine_sync_is_host(e->machine, g[i].sync))
            of[g[i].sync]++;
    }
}

/* Of those that are left, one of each sync that the form has a field for; what was taken is counted
 * in `now`. */
static bool take_carried(const struct bits_encoder *e, const struct form *f, const char *function,
                         int *left, int *now) {
    bool any = false;
    memset(now, 0, (size_t)e->machine->nsyncs * sizeof *now);
    for (int s = 0; f && s < e->machine->nsyncs; s++) {
        if (!left[s] || !form_carries(f, function, e->machine->sync[s].id)) continue;
        left[s]--;
        now[s] = 1;
        any = true;
    }
    return any;
}

static int first_left(const struct bits_encoder *e, const int *left) {
    for (int s = 0; s < e->machine->nsyncs; s++)
        if (left[s]) return s;
    return -1;
}

/* A sync with words of its own. */
static bool add_sync_words(struct bits_encoder *e, const struct signal *g, int n, bool push,
                           int queue, int *left) {
    for (int i = 0; i < n; i++) {
        const struct form *f = form_find(&e->forms, push ? FORM_PUSH : FORM_POP, g[i].sync);
        if (!f || !left[g[i].sync]) continue;
        const struct sync *s = &e->machine->sync[g[i].sync];
        struct issued x = {.machine = e->machine,
                           .channel = g[i].channel,
                           .pending = g[i].pending,
                           .bytes = s->size};
        if (g[i].rotating) {
            int64_t slot = e->slot[g[i].rotating - 1] < 0 ? 0 : e->slot[g[i].rotating - 1];
            x.channel = (slot + g[i].channel) % e->schedule->place[g[i].rotating - 1].slots;
        }
        if (!add_words(e, f, &x, queue, e->steps)) return false;
        left[g[i].sync]--;
    }
    return true;
}

/* The queue's nop carries what is left, as often as it takes. */
static bool add_nops(struct bits_encoder *e, int queue, int *pops, int *pushes) {
    int nop = queue < 0 ? -1 : e->machine->queue[queue].nop;
    const struct form *f = nop < 0 ? NULL : form_find(&e->forms, FORM_INSTR, nop);
    for (;;) {
        int s = first_left(e, pops), t = first_left(e, pushes);
        if (s < 0 && t < 0) return true;
        bool any = take_carried(e, f, "pop", pops, e->pop);
        any = take_carried(e, f, "push", pushes, e->push) || any;
        if (!any) {
            const struct sync *sync = &e->machine->sync[s >= 0 ? s : t];
            return encode_error(e, sync->at,
                                "a %s of '%s' on queue '%s' has no bits, expected a field with "
                                "%s(%s) in the instruction or the queue's nop",
                                s >= 0 ? "pop" : "push", sync->id,
                                queue < 0 ? "?" : e->machine->queue[queue].id,
                                s >= 0 ? "pop" : "push", sync->id);
        }
        struct site *site = site_new(&e->arena, e->machine, &e->machine->instr[nop]);
        struct issued x = {.machine = e->machine, .site = site, .pop = e->pop, .push = e->push};
        if (!add_words(e, f, &x, queue, e->steps)) return false;
    }
}

/* Pops that the form has no bits for stand before it, pushes behind it. */
static bool add_signalled(struct bits_encoder *e, const struct form *f, struct issued *x,
                          const struct signals *g, int queue) {
    size_t n = (size_t)e->machine->nsyncs + 1;
    int *left = memory_array(4 * n, sizeof *left), *pushes = left + n, *pop = pushes + n,
        *push = pop + n;
    int *none = memory_array(n, sizeof *none);
    count(e, g->pop, g->npops, left);
    count(e, g->push, g->npushes, pushes);
    take_carried(e, f, "pop", left, pop);
    take_carried(e, f, "push", pushes, push);
    bool ok =
        add_sync_words(e, g->pop, g->npops, false, queue, left) && add_nops(e, queue, left, none);
    if (x) x->pop = pop, x->push = push;
    ok = ok && (!f || add_words(e, f, x, queue, e->steps)) &&
         add_sync_words(e, g->push, g->npushes, true, queue, pushes) &&
         add_nops(e, queue, none, pushes);
    free(left);
    free(none);
    return ok;
}

/* A sync node: pops and pushes may share a nop. */
static bool add_sync(struct bits_encoder *e, const struct signals *g, int queue) {
    size_t n = (size_t)e->machine->nsyncs + 1;
    int *pops = memory_array(2 * n, sizeof *pops), *pushes = pops + n;
    count(e, g->pop, g->npops, pops);
    count(e, g->push, g->npushes, pushes);
    bool ok = add_sync_words(e, g->pop, g->npops, false, queue, pops);
    int *later = memory_array(n, sizeof *later);
    for (int i = 0; i < g->npushes; i++)
        if (form_find(&e->forms, FORM_PUSH, g->push[i].sync))
            later[g->push[i].sync] = pushes[g->push[i].sync], pushes[g->push[i].sync] = 0;
    ok = ok && add_nops(e, queue, pops, pushes) &&
         add_sync_words(e, g->push, g->npushes, true, queue, later);
    free(pops);
    free(later);
    return ok;
}

/* ---- issues ---- */

static int64_t evaluate(const struct bits_encoder *e, const struct sx *x) {
    return sx_eval(x, e->value);
}

static void locate(const struct bits_encoder *e, const struct issue_node *i, struct site *s) {
    for (int o = 0; o < s->instr->noperands; o++) {
        const struct arg *a = &i->arg[o];
        s->layout[o] = a->layout;
        s->imm[o] = a->imm;
        s->memory[o] = a->place < 0 ? MEMORY_IMM : e->schedule->place[a->place].memory;
        if (a->place < 0) continue;
        const struct place *p = &e->schedule->place[a->place];
        int64_t slot = e->slot[a->place] < 0 ? 0 : e->slot[a->place];
        s->address[o] = (struct known){true, p->address + slot * p->bytes + evaluate(e, a->offset)};
    }
}

static struct site *site_of(struct bits_encoder *e, const struct issue_node *i) {
    const struct instr *in = &e->machine->instr[i->instr];
    struct site *s = site_new(&e->arena, e->machine, in);
    for (int k = 0; k < in->nranged; k++)
        s->size[k] = (struct known){true, evaluate(e, i->size[k])};
    for (int k = 0; k < in->nstride_names; k++)
        s->stride[k] = (struct known){true, evaluate(e, i->stride[k])};
    for (int o = 0, flag = 0; o < in->noperands; o++)
        if (in->operand[o].accumulate)
            s->flag[flag] = (struct known){true, evaluate(e, i->flag[flag])}, flag++;
    locate(e, i, s);
    return s;
}

/* Which slots of states hold what the instruction needs. */
static bool find_slots(struct bits_encoder *e, const struct site *s) {
    const struct machine *m = e->machine;
    for (int k = 0; k < m->nstates; k++) e->use[k] = -1;
    for (int k = 0; k < s->instr->nneeds; k++) {
        const struct need *n = &s->instr->need[k];
        const struct state *t = &m->state[n->state];
        if (t->of >= 0 || state_from_addresses(m, n->state)) continue;
        for (int64_t slot = 0; slot < slots_used(m, n->state) && e->use[n->state] < 0; slot++) {
            bool same = e->is_set[n->state][slot];
            for (int f = 0; same && f < t->nfields; f++) {
                double v;
                same = site_eval(s, n->value[f], &v, NULL) &&
                       v == (double)e->state[n->state][slot * t->nfields + f];
            }
            if (same) e->use[n->state] = (int)slot;
        }
        if (e->use[n->state] < 0)
            return encode_error(e, s->instr->at, "no slot of state '%s' holds what '%s' needs",
                                t->id, s->instr->id);
    }
    return true;
}

static const struct form *instr_form(struct bits_encoder *e, int instr) {
    const struct form *f = form_find(&e->forms, FORM_INSTR, instr);
    if (!f)
        encode_error(e, e->machine->instr[instr].at,
                     "'%s' has no bit fields, expected an emit as bits",
                     e->machine->instr[instr].id);
    return f;
}

struct counted {
    int64_t extent[MAX_HARDWARE_LOOPS], first[MAX_HARDWARE_LOOPS];
    int64_t *step;
};

static void counted_start(struct bits_encoder *e, const struct instr *in, struct counted *c) {
    *c = (struct counted){.extent = {1, 1, 1, 1}};
    c->step = arena_array(&e->arena, (size_t)(in->nloops * in->noperands) + 1, sizeof *c->step);
}

static bool add_counted(struct bits_encoder *e, const struct issue_node *i, struct site *s,
                        const struct counted *c) {
    const struct form *f = instr_form(e, i->instr);
    struct issued x = {.machine = e->machine,
                       .site = s,
                       .extent = c->extent,
                       .first = c->first,
                       .step = c->step,
                       .slot = e->use,
                       .base = {e->home, 0}};
    return f && find_slots(e, s) && add_signalled(e, f, &x, &i->signals, s->instr->queue);
}

static bool no_table(struct bits_encoder *e, const struct instr *in) {
    return encode_error(e, in->at,
                        "'%s' takes its addresses from a table, expected a loop over one", in->id);
}

static bool add_issue(struct bits_encoder *e, const struct issue_node *i) {
    struct counted c;
    const struct instr *in = &e->machine->instr[i->instr];
    if (instr_table(in)) return no_table(e, in);
    counted_start(e, &e->machine->instr[i->instr], &c);
    return add_counted(e, i, site_of(e, i), &c);
}

static bool loop_trips(struct bits_encoder *e, const struct hardware *h, int64_t *trips) {
    for (int k = 0; k < h->nloops; k++) {
        const struct loop_node *l = h->loop[k];
        int64_t lo = evaluate(e, l->lo), hi = evaluate(e, l->hi);
        trips[k] = hi <= lo ? 0 : (hi - lo - 1) / l->step + 1;
        if (trips[k] < 1 || trips[k] > h->counter[k]->max)
            return encode_error(e, h->counter[k]->at,
                                "loop '%s' of '%s' runs %lld times, expected 1 to %lld",
                                h->counter[k]->id, e->machine->instr[h->issue->instr].id,
                                (long long)trips[k], (long long)h->counter[k]->max);
        e->value[l->var] = lo;
    }
    return true;
}

/* The addresses in each entry, as words of the table; where they stand in it. */
static bool find_entries(struct bits_encoder *e, const struct hardware *h, int64_t n,
                         struct site *s, int64_t *first) {
    const struct loop_node *l = h->loop[h->table];
    const struct hwloop *counter = h->counter[h->table];
    const struct form *f = NULL;
    for (int i = 0; i < e->forms.n && !f; i++)
        if (e->forms.at[i].kind == FORM_ENTRY && e->forms.at[i].index == h->issue->instr)
            f = &e->forms.at[i];
    int64_t size = table_entry_bytes(e->machine, counter), lo = e->value[l->var];
    if (!f || size < 1 || size != word_bytes(f->word))
        return encode_error(e, counter->at, "an entry of loop '%s' has no whole bytes",
                            counter->id);
    uint8_t *entry = memory_array((size_t)n, (size_t)size);
    bool ok = entry != NULL;
    for (int64_t t = 0; t < n && ok; t++) {
        struct issued x = {.machine = e->machine, .site = s};
        e->value[l->var] = lo + t * l->step;
        locate(e, h->issue, s);
        for (int i = 0; i < f->word->nfields && ok; i++)
            ok = field_pack(&f->word->field[i], &x, f->id, entry + t * size, e->diags);
    }
    e->value[l->var] = lo;
    locate(e, h->issue, s);
    const struct place *place = &e->schedule->place[l->table - 1],
                       *home = table_home(e->schedule, l->table - 1);
    int64_t at = ok && home ? table_find(home, entry, n, size) : 0;
    free(entry);
    *first = place->address / size + at;
    if (ok && (at < 0 || !home))
        return encode_error(e, counter->at, "the entries of '%s' do not stand in table '%s'",
                            e->machine->instr[h->issue->instr].id, place->name);
    return ok;
}

static bool add_hardware(struct bits_encoder *e, const struct loop_node *l) {
    struct hardware h;
    struct counted c;
    int64_t trips[MAX_HARDWARE_LOOPS];
    if (!hardware_issue(e->machine, l, &h))
        return encode_error(e, (struct place_in_file){e->machine->file, 0},
                            "hardware loops are not around one issue that has them");
    const struct instr *in = &e->machine->instr[h.issue->instr];
    if (instr_table(in) && h.table < 0) return no_table(e, in);
    counted_start(e, in, &c);
    if (in->nloops > MAX_HARDWARE_LOOPS || !loop_trips(e, &h, trips)) return false;
    struct site *s = site_of(e, h.issue), *next = site_of(e, h.issue);
    for (int k = 0; k < h.nloops; k++) {
        int at = (int)(h.counter[k] - in->loop);
        c.extent[at] = trips[k];
        if (k == h.table && !find_entries(e, &h, trips[k], s, &c.first[at])) return false;
        if (k == h.table) continue;
        e->value[h.loop[k]->var] += h.loop[k]->step;
        locate(e, h.issue, next);
        for (int o = 0; o < in->noperands && trips[k] > 1; o++)
            if (next->address[o].is)
                c.step[at * in->noperands + o] = next->address[o].value - s->address[o].value;
        e->value[h.loop[k]->var] -= h.loop[k]->step;
    }
    return add_counted(e, h.issue, s, &c);
}

/* ---- configures ---- */

static bool add_configure(struct bits_encoder *e, const struct configure_node *n) {
    const struct configure *c = &e->machine->configure[n->configure];
    const struct form *f = form_find(&e->forms, FORM_CONFIGURE, n->configure);
    int nvalues = 0;
    if (!f || c->queue < 0)
        return encode_error(e, c->at, "'%s' has no bits in a stream, expected %s", c->id,
                            f ? "a queue" : "an emit as bits");
    for (int k = 0; k < n->nsets; k++) nvalues += e->machine->state[n->set[k].state].nfields;
    int64_t *value = arena_array(&e->arena, (size_t)nvalues + 1, sizeof *value), *at = value;
    for (int k = 0; k < n->nsets; k++) {
        const struct state *t = &e->machine->state[n->set[k].state];
        int state = n->set[k].state, slot = n->set[k].index;
        for (int i = 0; i < t->nfields; i++) *at++ = evaluate(e, n->set[k].value[i]);
        if (slot < 0 || slot >= slots_used(e->machine, state)) continue;
        memcpy(&e->state[state][slot * t->nfields], at - t->nfields,
               (size_t)t->nfields * sizeof *value);
        e->is_set[state][slot] = true;
    }
    struct settings settings = {e->machine, n, value};
    struct issued x = {.machine = e->machine, .settings = &settings};
    return add_signalled(e, f, &x, &n->signals, c->queue);
}

bool bits_add(struct bits_encoder *e, const struct node *n, const int64_t *value,
              const int64_t *slot) {
    bool ok = false;
    memcpy(e->value, value, (size_t)e->schedule->nvars * sizeof *value);
    e->slot = slot;
    if (n->kind == NODE_ISSUE) ok = add_issue(e, n->issue);
    if (n->kind == NODE_LOOP) ok = add_hardware(e, n->loop);
    if (n->kind == NODE_SYNC) ok = add_sync(e, &n->sync.signals, n->sync.queue);
    if (n->kind == NODE_CONFIGURE) ok = add_configure(e, n->configure);
    e->steps++;
    return ok;
}

/* ---- launches ---- */

static int64_t stream_words(const struct form *f) {
    int64_t n = 0;
    for (int k = 0; f && k < f->nwords; k++) n += f->word[k].address < 0;
    return n;
}

static bool add_registers(struct bits_encoder *e, const struct form *f, const struct issued *x,
                          struct bits_launch *out) {
    out->reg = arena_array(&e->arena, (size_t)(f ? f->nwords : 0) + 1, sizeof *out->reg);
    for (int k = 0; f && k < f->nwords; k++) {
        const struct bit_word *w = &f->word[k];
        uint8_t word[BITS_WORD / 8] = {0};
        if (w->address < 0) continue;
        for (int i = 0; i < w->nfields; i++)
            if (!field_pack(&w->field[i], x, f->id, word, e->diags)) return false;
        struct device_register *r = &out->reg[out->nregs++];
        *r = (struct device_register){(uint64_t)w->address, 0, (int)w->bits};
        for (int b = 0; b < 8 && b < word_bytes(w); b++) r->value |= (uint64_t)word[b] << 8 * b;
    }
    return true;
}

int64_t bits_stream_bytes(const struct bits_encoder *e) {
    const struct form *end = form_find(&e->forms, FORM_END, 0);
    int64_t bytes = e->bytes;
    for (int k = 0; end && k < end->nwords; k++)
        if (end->word[k].address < 0) bytes += word_bytes(&end->word[k]);
    return bytes;
}

bool bits_take(struct bits_encoder *e, int64_t address, struct bits_launch *out) {
    const struct form *begin = form_find(&e->forms, FORM_BEGIN, 0),
                      *end = form_find(&e->forms, FORM_END, 0);
    struct issued x = {.machine = e->machine,
                       .base = {e->home, address},
                       .instructions = e->nlines + stream_words(end)};
    *out = (struct bits_launch){0};
    if (stream_words(begin))
        return encode_error(e, e->machine->begin[0].at,
                            "'begin' has words of the stream, expected register writes (at)");
    if (end && !add_words(e, end, &x, -1, -1)) return false;
    if (!add_registers(e, begin, &x, out)) return false;
    out->stream = arena_copy(&e->arena, e->stream, (size_t)e->bytes);
    out->bytes = e->bytes;
    out->n = e->nlines;
    out->line = e->line;
    e->bytes = 0;
    e->line = NULL;
    e->nlines = e->cap_lines = e->steps = 0;
    return true;
}
