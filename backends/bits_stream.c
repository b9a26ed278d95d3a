/* A stream of words as a schedule: what the simulator runs and times from the machine file. Each
 * memory is one buffer, each word an issue. */
#include "backends/bits_int.h"

#include <string.h>

struct streaming {
    struct arena *arena;
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
    text_printf(s->out, "    }\n  }\n  place m%d: m%d in \"%s\" at 0 bytes %lld argument\n",
                m->home, m->home, home, (long long)bytes);
    for (int i = 0; i < m->nmemories; i++)
        if (is_local(m, i))
            text_printf(s->out, "  place m%d: m%d in \"%s\" at 0 bytes %lld local\n", i, i,
                        m->memory[i].id, (long long)m->memory[i].size);
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

static bool operand(struct streaming *s, const struct decoded *d, int o, bool *any, int64_t at) {
    const struct instr *in = d->site->instr;
    const struct operand *op = &in->operand[o];
    int memory = d->site->memory[o];
    if (!d->site->address[o].is) return stream_error(s, at, "does not say where is", op->buffer);
    text_printf(s->out, "%s%s = ", *any ? ", " : "", op->buffer);
    *any = true;
    if (memory < 0 && type_is_float(op->type)) {
        text_printf(s->out, "imm %.17g", d->site->imm[o].f);
        return true;
    }
    if (memory < 0) {
        text_printf(s->out, "imm %lld", (long long)d->site->imm[o].i);
        return true;
    }
    text_printf(s->out, "m%d + %lld",
                memory_is_home(s->machine, memory) ? s->machine->home : memory,
                (long long)d->site->address[o].value);
    for (int l = 0; l < in->nloops; l++) {
        const struct known *step = &d->step[l * in->noperands + o];
        if (loop_used(d, l) && step->is && step->value)
            text_printf(s->out, " + l%d*%lld", l, (long long)step->value);
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

static bool issue(struct streaming *s, const struct decoded *d, int64_t at) {
    const struct instr *in = d->site->instr;
    bool any = false, ok = true;
    for (int l = 0; l < in->nloops; l++) {
        if (in->loop[l].table >= 0)
            return stream_error(s, at,
                                "takes its addresses from a table, which a schedule of "
                                "words cannot say:",
                                in->id);
        if (!loop_used(d, l)) continue;
        if (!d->extent[l].is)
            return stream_error(s, at, "does not say how often runs", in->loop[l].id);
        text_printf(s->out, "loop l%d = 0 to %lld hardware { ", l, (long long)d->extent[l].value);
    }
    text_printf(s->out, "    issue \"%s\"(", in->id);
    for (int i = 0; i < in->nranged && ok; i++)
        ok = value(s, &d->site->size[i], in->semantics->param[in->ranged[i]].name, &any, at);
    for (int i = 0; i < in->nstride_names && ok; i++)
        ok = value(s, &d->site->stride[i], in->stride_name[i], &any, at);
    for (int o = 0, flag = 0; o < in->noperands && ok; o++)
        if (in->operand[o].accumulate)
            ok = value(s, &d->site->flag[flag++], in->operand[o].accumulate, &any, at);
    for (int o = 0; o < in->noperands && ok; o++) ok = operand(s, d, o, &any, at);
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

bool bits_schedule(const struct machine *m, const char *name, const uint8_t *stream, int64_t bytes,
                   int64_t memory, struct text *out, struct diags *diags) {
    struct arena arena;
    arena_init(&arena);
    struct streaming s = {&arena, m, forms_of(&arena, m), name, diags, out};
    bool ok = true;
    head(&s, name, memory);
    for (int64_t at = 0; at < bytes && ok;) {
        struct arena one;
        struct decoded d;
        arena_init(&one);
        ok = decode_one(&one, m, &s.forms, stream + at, bytes - at, &d) ||
             stream_error(&s, at, "is no instruction of", m->name);
        ok = ok && add_word(&s, &d, at);
        if (ok) at += d.bytes;
        arena_free(&one);
    }
    text_printf(out, "  }\n}\n");
    arena_free(&arena);
    return ok;
}
