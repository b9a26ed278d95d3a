/* A schedule read from its text: head, places, sections; parse_node.c reads the nodes. */
#include "scheduler/schedule/lex.h"

#include <inttypes.h>
#include <string.h>

static bool read_keep(struct reader *r, enum keep *out) {
    for (int k = 0; k < 4; k++) {
        if (!read_accept(r, keep_name[k])) continue;
        *out = (enum keep)k;
        return true;
    }
    return read_fail(r, r->word.at,
                     "unexpected '%s', expected argument, prepared, workspace or local",
                     r->word.text);
}

static bool read_layout(struct reader *r, struct place *p, int ndims) {
    size_t at = r->word.at;
    p->layout_text = read_name(r, "a layout in quotes");
    if (!p->layout_text) return false;
    struct layout *layout =
        layout_parse(r->arena, p->layout_text, r->source->file, read_line(r, at), r->diags);
    if (!layout) {
        r->failed = true;
        return false;
    }
    p->layout = layout;
    if (layout->nindices != ndims)
        return read_fail(r, at, "the layout has %d indices, the buffer %d dimensions",
                         layout->nindices, ndims);
    return true;
}

static bool read_extents(struct reader *r, struct place *p, const struct buffer *b) {
    if (!read_expect(r, "[")) return false;
    p->extent = arena_array(r->arena, (size_t)b->ndims + 1, sizeof *p->extent);
    for (int d = 0; d < b->ndims; d++) {
        if (d > 0 && !read_expect(r, ",")) return false;
        if (!read_integer(r, "an extent", b->extent[d], INT64_MAX, &p->extent[d])) return false;
    }
    return read_expect(r, "]");
}

static void default_extents(struct reader *r, struct place *p, const struct buffer *b) {
    if (p->keep == KEEP_LOCAL || p->extent) return;
    p->extent = arena_array(r->arena, (size_t)b->ndims + 1, sizeof *p->extent);
    if (b->ndims) memcpy(p->extent, b->extent, (size_t)b->ndims * sizeof *p->extent);
}

static bool read_table(struct reader *r, struct place *p, const struct buffer *b) {
    size_t size = type_size(b->type);
    if (type_is_float(b->type) || b->ndims != 1 || b->elements > MAX_TABLE)
        return read_fail(r, r->word.at,
                         "buffer '%s' cannot hold a table, expected one dimension "
                         "of at most %d integers",
                         b->name, MAX_TABLE);
    uint8_t *at = arena_alloc(r->arena, (size_t)b->elements * size + 1);
    if (!read_expect(r, "[")) return false;
    for (int64_t e = 0; e < b->elements; e++) {
        union value x;
        if (e > 0 && !read_expect(r, ",")) return false;
        if (!read_integer(r, "an element of the table", INT64_MIN, INT64_MAX, &x.i)) return false;
        type_store(b->type, at + (size_t)e * size, x);
    }
    p->table = at;
    return read_expect(r, "]");
}

static bool read_place(struct reader *r) {
    struct schedule *s = r->schedule;
    struct place p = {.slots = 1};
    size_t at = r->word.at;
    p.name = read_name(r, "the name of a place");
    if (!p.name) return false;
    if (find_place(s, p.name) >= 0) return read_fail(r, at, "two places of the name '%s'", p.name);
    if (!read_expect(r, ":")) return false;
    p.buffer = read_buffer(r);
    if (p.buffer < 0 || !read_expect(r, "in")) return false;
    at = r->word.at;
    const char *memory = read_name(r, "a memory of the machine");
    if (!memory) return false;
    p.memory = machine_memory(r->machine, memory);
    if (p.memory < 0) return read_fail(r, at, "the machine has no memory '%s'", memory);
    int64_t slots = 1;
    if (!read_expect(r, "at") || !read_integer(r, "an address", 0, INT64_MAX, &p.address) ||
        !read_expect(r, "bytes") || !read_integer(r, "bytes", 0, INT64_MAX, &p.bytes))
        return false;
    if (read_accept(r, "slots") && !read_integer(r, "slots", 1, 1 << 20, &slots)) return false;
    p.slots = (int)slots;
    const struct buffer *b = &s->program->buffer[p.buffer];
    if (!read_keep(r, &p.keep)) return false;
    if (read_accept(r, "layout") && !read_layout(r, &p, b->ndims)) return false;
    if (read_accept(r, "extent") && !read_extents(r, &p, b)) return false;
    if (read_accept(r, "table") && !read_table(r, &p, b)) return false;
    default_extents(r, &p, b);
    GROW(r->arena, s->place, s->nplaces, r->places_cap);
    s->place[s->nplaces++] = p;
    return !r->failed;
}

/* Without one it is version 1. */
static bool read_version(struct reader *r) {
    size_t at = r->word.at;
    int64_t version = SCHEDULE_VERSION;
    if (read_accept(r, "version") && !read_integer(r, "a version", 1, INT32_MAX, &version))
        return false;
    if (version == SCHEDULE_VERSION) return true;
    return read_fail(r, at,
                     "the schedule is of version %" PRId64 ", this isamap reads version %d: "
                     "compile the program again",
                     version, SCHEDULE_VERSION);
}

static bool read_head(struct reader *r) {
    if (!read_expect(r, "schedule") || !read_name(r, "the schedule's name") ||
        !read_expect(r, "on"))
        return false;
    size_t at = r->word.at;
    const char *machine = read_name(r, "the machine's name");
    if (!machine) return false;
    if (strcmp(machine, r->machine->name) != 0)
        return read_fail(r, at, "the schedule is for machine '%s', not '%s'", machine,
                         r->machine->name);
    return read_version(r) &&
           (!read_accept(r, "cost") || read_double(r, "a cost", &r->schedule->cost));
}

/* Behind "cost". */
static bool read_open_cost(struct reader *r) {
    struct schedule *s = r->schedule;
    struct open_cost *all = arena_array(r->arena, (size_t)s->nopen + 1, sizeof *all);
    if (s->nopen) memcpy(all, s->open, sizeof *all * (size_t)s->nopen);
    s->open = all;
    struct open_cost *c = &all[s->nopen++];
    if (!read_double(r, "a cost", &c->cycles) || !read_expect(r, "each")) return false;
    do {
        int k = read_open_size(r);
        if (k < 0) return false;
        c->sizes |= UINT64_C(1) << k;
    } while (read_accept(r, ","));
    return true;
}

static bool read_schedule(struct reader *r) {
    struct schedule *s = r->schedule;
    if (!read_head(r) || !read_expect(r, "{")) return false;
    s->program = read_program_of(r, "program");
    if (r->failed || !read_chain(r)) return false;
    for (int k = 0; k < s->program->nsizes; k++) {
        int v = bind_var(r, r->word.at, s->program->size[k].name);
        if (v < 0) return false;
        r->bound[v] = true;
    }
    while (read_accept(r, "cost"))
        if (!read_open_cost(r)) return false;
    while (read_accept(r, "place"))
        if (!read_place(r)) return false;
    if (read_accept(r, "prepare") && !read_block(r, &s->prepare.node, &s->prepare.nnodes))
        return false;
    if (!read_expect(r, "run") || !read_block(r, &s->run.node, &s->run.nnodes) ||
        !read_expect(r, "}"))
        return false;
    if (r->word.kind != WORD_END)
        return read_fail(r, r->word.at, "unexpected '%s' after the schedule", r->word.text);
    return true;
}

struct schedule *schedule_parse(const struct machine *m, const struct source *source,
                                struct diags *d) {
    struct schedule *s = schedule_new(m);
    struct reader r = {
        .arena = &s->arena, .source = source, .diags = d, .schedule = s, .machine = m};
    read_advance(&r);
    if (read_schedule(&r) && !r.failed) return s;
    schedule_free(s);
    return NULL;
}
