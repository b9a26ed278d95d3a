/* A stream of words as a schedule: what the simulator runs and times from the machine file. Each
 * memory is one buffer, each word an issue. */
#include "backends/bits/bits_int.h"

#include <string.h>

/* What a move brought to a table's memory. */
struct brought {
    int64_t word, from, to, bytes; /* which word of the stream; addresses */
    int operand[2];                /* of the move: read, written */
    int memory;
};

enum { MOST_ENTRIES = 256 }; /* in one instruction */

struct streaming {
    struct arena *arena;
    const uint8_t *home;
    int64_t home_bytes;
    struct brought *table;
    int ntables, cap_tables;
    const struct machine *machine;
    struct forms forms;
    const char *path;
    struct diags *diags;
    struct text *out;
};

static bool stream_error(struct streaming *s, int64_t at, const char *what, const char *id) {
    diag_line(s->diags, s->path, 0, 0, "the word at byte %lld of the stream %s '%s'", (long long)at,
              what, id);
    return false;
}

/* The first type that may live in the memory. */
static enum type memory_type(const struct memory *m) {
    for (int t = 0; t < TYPE_COUNT; t++)
        if (m->types >> t & 1) return (enum type)t;
    return TYPE_U8;
}

static bool is_local(const struct machine *m, int memory) {
    return !memory_is_home(m, memory) && m->memory[memory].caches < 0 &&
           m->memory[memory].alias < 0 && m->memory[memory].size > 0;
}

static bool holds_table(const struct machine *m, int memory) {
    for (int i = 0; i < m->ninstrs; i++)
        for (int l = 0; l < m->instr[i].nloops; l++)
            if (m->instr[i].loop[l].table == memory) return true;
    return false;
}

/* The move of entries from the home memory that this word is; false: it is none. */
static bool brings_table(const struct streaming *s, const struct decoded *d, int64_t at,
                         struct brought *t) {
    const struct instr *in = d->site ? d->site->instr : NULL;
    *t = (struct brought){.word = at, .operand = {-1, -1}};
    for (int o = 0; in && in->is_move && o < in->noperands; o++)
        if (d->site->memory[o] >= 0) t->operand[in->operand[o].role != ROLE_IN] = o;
    if (t->operand[0] < 0 || t->operand[1] < 0) return false;
    const struct known *from = &d->site->address[t->operand[0]],
                       *to = &d->site->address[t->operand[1]];
    t->memory = d->site->memory[t->operand[1]];
    if (!holds_table(s->machine, t->memory) || !from->is || !to->is) return false;
    int64_t span = site_span(d->site, t->operand[1]);
    t->from = from->value;
    t->to = to->value;
    t->bytes = span * (int64_t)type_size(in->operand[t->operand[1]].type);
    return span > 0 && s->home && t->from >= 0 && t->from + t->bytes <= s->home_bytes;
}

static void add_brought(struct streaming *s, const struct decoded *d, int64_t at) {
    struct brought t;
    if (!brings_table(s, d, at, &t)) return;
    if (s->ntables == s->cap_tables) GROW(s->arena, s->table, s->ntables, s->cap_tables);
    s->table[s->ntables++] = t;
}

static void table_places(struct streaming *s) {
    const struct machine *m = s->machine;
    for (int k = 0; k < s->ntables; k++) {
        const struct brought *t = &s->table[k];
        text_printf(s->out, "  place h%d: t%d in \"%s\" at %lld bytes %lld prepared table [", k, k,
                    m->memory[m->home].id, (long long)t->from, (long long)t->bytes);
        for (int64_t b = 0; b < t->bytes; b++)
            text_printf(s->out, "%s%d", b ? ", " : "", s->home[t->from + b]);
        text_printf(s->out, "]\n  place p%d: t%d in \"%s\" at %lld bytes %lld local\n", k, k,
                    m->memory[t->memory].id, (long long)t->to, (long long)t->bytes);
    }
}

static void head(struct streaming *s, const char *name, int64_t bytes) {
    const struct machine *m = s->machine;
    const char *home = m->memory[m->home].id;
    text_printf(s->out, "schedule \"%s\" on \"%s\" {\n  program {\n    kernel stream() {\n", name,
                m->name);
    text_printf(s->out, "      inout m%d: u8[%lld]\n", m->home, (long long)bytes);
    for (int i = 0; i < m->nmemories; i++)
        if (is_local(m, i))
            text_printf(
                s->out, "      temp m%d: %s[%lld]\n", i, type_name(memory_type(&m->memory[i])),
                (long long)(m->memory[i].size / (int64_t)type_size(memory_type(&m->memory[i]))));
    for (int k = 0; k < s->ntables; k++)
        text_printf(s->out, "      temp t%d: u8[%lld]\n", k, (long long)s->table[k].bytes);
    text_printf(s->out, "    }\n  }\n  place m%d: m%d in \"%s\" at 0 bytes %lld argument\n",
                m->home, m->home, home, (long long)bytes);
    for (int i = 0; i < m->nmemories; i++)
        if (is_local(m, i))
            text_printf(s->out, "  place m%d: m%d in \"%s\" at 0 bytes %lld local\n", i, i,
                        m->memory[i].id, (long long)m->memory[i].size);
    table_places(s);
    text_printf(s->out, "  run {\n");
}

static bool value(struct streaming *s, const struct known *k, const char *name, bool *any,
                  int64_t at) {
    if (!k->is) return stream_error(s, at, "does not say what is", name);
    text_printf(s->out, "%s%s = %lld", *any ? ", " : "", name, (long long)k->value);
    return *any = true;
}

static bool loop_used(const struct decoded *d, int l) {
    return d->site->instr->loop[l].table >= 0 || (d->extent[l].is && d->extent[l].value != 1);
}

static int table_loop(const struct instr *in) {
    for (int l = 0; l < in->nloops; l++)
        if (in->loop[l].table >= 0) return l;
    return -1;
}

/* The last of the moves before that brought this entry of the loop's; -1: there is none. */
static int find_brought(const struct streaming *s, const struct decoded *d, int l, int64_t entry,
                        int64_t at) {
    const struct hwloop *loop = &d->site->instr->loop[l];
    int64_t size = table_entry_bytes(s->machine, loop), from;
    if (!d->first[l].is || size < 1) return -1;
    from = (d->first[l].value + entry) * size;
    for (int k = s->ntables - 1; k >= 0; k--) {
        const struct brought *t = &s->table[k];
        if (t->word < at && t->memory == loop->table && from >= t->to &&
            from + size <= t->to + t->bytes)
            return k;
    }
    return -1;
}

/* From entry to entry the address is any: a sum of what it is in each. */
static bool entry_offsets(struct streaming *s, const struct decoded *d, int o, int64_t at) {
    const struct instr *in = d->site->instr;
    int l = table_loop(in), instr = (int)(in - s->machine->instr);
    int64_t size = table_entry_bytes(s->machine, &in->loop[l]);
    text_printf(s->out, "0");
    for (int64_t k = 0; k < d->extent[l].value; k++) {
        const struct brought *t = &s->table[find_brought(s, d, l, k, at)];
        const uint8_t *entry = s->home + t->from + (d->first[l].value + k) * size - t->to;
        struct site *one = site_copy(s->arena, d->site);
        if (!decode_entry(s->arena, s->machine, &s->forms, instr, entry, one) ||
            !one->address[o].is)
            return stream_error(s, at, "has an entry that does not say where is",
                                in->operand[o].buffer);
        if (one->address[o].value)
            text_printf(s->out, " + (l%d == %lld)*%lld", l, (long long)k,
                        (long long)one->address[o].value);
    }
    return true;
}

static void loop_steps(struct streaming *s, const struct decoded *d, int o) {
    const struct instr *in = d->site->instr;
    for (int l = 0; l < in->nloops; l++) {
        const struct known *step = &d->step[l * in->noperands + o];
        if (loop_used(d, l) && step->is && step->value)
            text_printf(s->out, " + l%d*%lld", l, (long long)step->value);
    }
}

/* `entries`: the loop over them stands around; they say where it is. */
static bool operand(struct streaming *s, const struct decoded *d, int o, bool entries, bool *any,
                    int64_t at) {
    const struct operand *op = &d->site->instr->operand[o];
    int memory = d->site->memory[o];
    bool known = d->site->address[o].is, listed = !known && memory >= 0 && entries;
    struct brought b;
    if (!known && !listed) return stream_error(s, at, "does not say where is", op->buffer);
    text_printf(s->out, "%s%s = ", *any ? ", " : "", op->buffer);
    *any = true;
    if (memory < 0 && type_is_float(op->type)) {
        text_printf(s->out, "imm %.17g", d->site->imm[o].f);
    } else if (memory < 0) {
        text_printf(s->out, "imm %lld", (long long)d->site->imm[o].i);
    } else if (brings_table(s, d, at, &b)) {
        int k = 0;
        while (k < s->ntables - 1 && s->table[k].word != at) k++;
        text_printf(s->out, "%c%d", o == b.operand[0] ? 'h' : 'p', k);
    } else {
        text_printf(s->out, "m%d + ",
                    memory_is_home(s->machine, memory) ? s->machine->home : memory);
        if (known) text_printf(s->out, "%lld", (long long)d->site->address[o].value);
        if (listed && !entry_offsets(s, d, o, at)) return false;
        loop_steps(s, d, o);
    }
    return true;
}

static void signals(struct streaming *s, const struct decoded *d) {
    for (int k = 0; k < s->machine->nsyncs; k++)
        for (int n = 0; n < d->pop[k]; n++)
            text_printf(s->out, " pop \"%s\"", s->machine->sync[k].id);
    for (int k = 0; k < s->machine->nsyncs; k++)
        for (int n = 0; n < d->push[k]; n++)
            text_printf(s->out, " push \"%s\"", s->machine->sync[k].id);
    text_printf(s->out, "\n");
}

/* A loop over entries names the place of the first. */
static bool open_table(struct streaming *s, const struct decoded *d, int l, int64_t at) {
    const struct instr *in = d->site->instr;
    for (int64_t k = 0; k < d->extent[l].value; k++)
        if (find_brought(s, d, l, k, at) < 0)
            return stream_error(s, at, "finds no entries for", in->loop[l].id);
    text_printf(s->out, " table p%d", find_brought(s, d, l, 0, at));
    return true;
}

/* Opens the instruction's loops; *entries: one of them is over entries. */
static bool open_loops(struct streaming *s, const struct decoded *d, int64_t at, bool *entries) {
    const struct instr *in = d->site->instr;
    *entries = false;
    for (int l = 0; l < in->nloops; l++) {
        if (!loop_used(d, l)) continue;
        if (!d->extent[l].is)
            return stream_error(s, at, "does not say how often runs", in->loop[l].id);
        if (in->loop[l].table >= 0 && d->extent[l].value > MOST_ENTRIES)
            return stream_error(s, at, "has too many entries to be simulated:", in->id);
        text_printf(s->out, "    loop l%d = 0 to %lld hardware", l, (long long)d->extent[l].value);
        if (in->loop[l].table >= 0 && d->extent[l].value > 0) {
            if (!open_table(s, d, l, at)) return false;
            *entries = true;
        }
        text_printf(s->out, " {\n");
    }
    return true;
}

static bool issue(struct streaming *s, const struct decoded *d, int64_t at) {
    const struct instr *in = d->site->instr;
    bool entries, any = false, ok = open_loops(s, d, at, &entries);
    text_printf(s->out, "    issue \"%s\"(", in->id);
    for (int i = 0; i < in->nranged && ok; i++)
        ok = value(s, &d->site->size[i], in->semantics->param[in->ranged[i]].name, &any, at);
    for (int i = 0; i < in->nstride_names && ok; i++)
        ok = value(s, &d->site->stride[i], in->stride_name[i], &any, at);
    for (int o = 0, flag = 0; o < in->noperands && ok; o++)
        if (in->operand[o].accumulate)
            ok = value(s, &d->site->flag[flag++], in->operand[o].accumulate, &any, at);
    for (int o = 0; o < in->noperands && ok; o++) ok = operand(s, d, o, entries, &any, at);
    text_printf(s->out, ")");
    signals(s, d);
    for (int l = 0; l < in->nloops; l++)
        if (loop_used(d, l)) text_printf(s->out, "    }\n");
    return ok;
}

static bool add_word(struct streaming *s, const struct decoded *d, int64_t at) {
    const struct instr *in = d->site ? d->site->instr : NULL;
    if (d->form->kind == FORM_END) return true;
    if (!in) return stream_error(s, at, "cannot be simulated:", d->form->id);
    if (in->queue < 0 || s->machine->queue[in->queue].nop != d->form->index) return issue(s, d, at);
    text_printf(s->out, "    sync \"%s\"", s->machine->queue[in->queue].id);
    signals(s, d);
    return true;
}

/* Goes through the words; without `issues` to see which of them bring tables. */
static bool walk_words(struct streaming *s, const uint8_t *stream, int64_t bytes, bool issues) {
    bool ok = true;
    for (int64_t at = 0; at < bytes && ok;) {
        struct arena one;
        struct decoded d;
        arena_init(&one);
        ok = decode_one(&one, s->machine, &s->forms, stream + at, bytes - at, &d) ||
             stream_error(s, at, "is no instruction of", s->machine->name);
        if (ok && !issues) add_brought(s, &d, at);
        ok = ok && (!issues || add_word(s, &d, at));
        if (ok) at += d.bytes;
        arena_free(&one);
    }
    return ok;
}

bool bits_schedule(const struct machine *m, const char *name, const uint8_t *stream, int64_t bytes,
                   const uint8_t *home, int64_t home_bytes, struct text *out, struct diags *diags) {
    struct arena arena;
    arena_init(&arena);
    struct streaming s = {.arena = &arena,
                          .home = home,
                          .home_bytes = home_bytes,
                          .machine = m,
                          .forms = forms_of(&arena, m),
                          .path = name,
                          .diags = diags,
                          .out = out};
    bool ok = walk_words(&s, stream, bytes, false);
    if (ok) head(&s, name, home_bytes);
    ok = ok && walk_words(&s, stream, bytes, true);
    text_printf(out, "  }\n}\n");
    arena_free(&arena);
    return ok;
}
