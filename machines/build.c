#include "machines/build.h"
#include "ir/memory.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_QUEUES = 64, MAX_FEATURES = 64, MAX_EACH = 4096 };

static const struct {
    const char *tag;
    enum kind kind;
} kinds[] = {{"unit", KIND_UNIT},       {"memory", KIND_MEMORY},
             {"bus", KIND_BUS},         {"queue", KIND_QUEUE},
             {"sync", KIND_SYNC},       {"state", KIND_STATE},
             {"format", KIND_FORMAT},   {"instruction", KIND_INSTR},
             {"move", KIND_INSTR},      {"configure", KIND_CONFIGURE},
             {"feature", KIND_FEATURE}, {"fallback", KIND_FALLBACK},
             {"param", KIND_PARAM},     {"prelude", KIND_PRELUDE},
             {"begin", KIND_BEGIN},     {"end", KIND_END},
             {"measure", KIND_MEASURE}};

static struct place_in_file place(const struct node *n) {
    return (struct place_in_file){n->file, n->line};
}

static const double HIDDEN = 255.0 / 256; /* without an attribute */

/* ---- collecting ---- */

static void check_unreplaced(struct build *b, const struct node *n) {
    for (int i = 0; i <= n->nattrs; i++) {
        const char *text = i < n->nattrs ? n->attr[i].value : n->text,
                   *hit = text ? strstr(text, "$(") : NULL;
        size_t k =
            hit ? strspn(hit + 2, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
                : 0;
        if (!k || hit[2 + k] != ')') continue;
        int line = i < n->nattrs ? n->attr[i].line : n->text_line;
        diag_line(b->diags, n->file, line, 0,
                  "nothing replaces '$(%.*s)', expected a 'for' around it that names it", (int)k,
                  hit + 2);
    }
    if (strcmp(n->tag, "unit"))
        for (int i = 0; i < n->nchildren; i++) check_unreplaced(b, n->child[i]);
}

static void add_found(struct build *b, enum kind kind, const struct node *n, int unit) {
    const char *id = node_key(n);
    int twice = id ? build_find(b, kind, id) : -1;
    if (kind == KIND_MEMORY && id && !strcmp(id, "imm"))
        diag_line(b->diags, n->file, n->line, 0, "memory 'imm' is built in, expected another id");
    if (twice >= 0) {
        const struct node *o = b->found[kind][twice].node;
        diag_line(
            b->diags, n->file, n->line, 0,
            "%s '%s' is defined twice, first at %s:%d, expected ids that are unique in the machine",
            n->tag, id, o->file, o->line);
        return;
    }
    if (b->n[kind] >= MAX_EACH) {
        if (b->n[kind] == MAX_EACH)
            diag_line(b->diags, n->file, n->line, 0, "more than %d of '%s', expected fewer",
                      MAX_EACH, n->tag);
        return;
    }
    GROW(b->arena, b->found[kind], b->n[kind], b->cap[kind]);
    b->found[kind][b->n[kind]++] = (struct found){n, id, unit};
}

static void collect(struct build *b, const struct node *n, int unit) {
    for (int i = 0; i < n->nchildren; i++) {
        const struct node *c = n->child[i];
        check_unreplaced(b, c);
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            if (!strcmp(kinds[k].tag, c->tag)) add_found(b, kinds[k].kind, c, unit);
        if (!strcmp(c->tag, "unit")) collect(b, c, b->n[KIND_UNIT] - 1);
    }
}

static bool check_counts(struct build *b, const struct node *root) {
    if (b->n[KIND_QUEUE] > MAX_QUEUES)
        diag_line(b->diags, root->file, root->line, 0, "%d queues, expected at most %d",
                  b->n[KIND_QUEUE], MAX_QUEUES);
    if (b->n[KIND_FEATURE] > MAX_FEATURES)
        diag_line(b->diags, root->file, root->line, 0, "%d features, expected at most %d",
                  b->n[KIND_FEATURE], MAX_FEATURES);
    return !b->diags->errors;
}

/* ---- units and memories ---- */

static void build_unit(struct build *b, int i, const struct node *n, int parent) {
    struct unit *u = &b->m->unit[i];
    const char *count = node_attr(n, "count"), *is_virtual = node_attr(n, "virtual");
    *u = (struct unit){.id = i ? node_attr(n, "id") : b->m->name,
                       .parent = parent,
                       .count = 1,
                       .count_max = 1,
                       .at = place(n)};
    if (count && strstr(count, "..")) {
        if (!build_range(b, n, "count", &u->count, &u->count_max)) u->count = u->count_max = 1;
        if (u->count < 1)
            diag_line(b->diags, n->file, node_attr_line(n, "count"), 0,
                      "count '%s' of unit '%s', expected at least 1", count, u->id);
    } else {
        u->count = u->count_max = build_int(b, n, "count", 1, 1);
    }
    u->total = build_int(b, n, "total", 0, 1);
    u->index = node_attr(n, "index");
    u->is_virtual = is_virtual && (*is_virtual == 't' || *is_virtual == '1');
    u->clock = build_number(b, n, "clock", parent < 0 ? 1e9 : b->m->unit[parent].clock);
    u->fetch = build_number(b, n, "fetch", parent < 0 ? 0 : b->m->unit[parent].fetch);
    u->waking = build_number(b, n, "waking", 0);
    u->power = build_number(b, n, "power", 0);
    if (u->clock <= 0) {
        diag_line(b->diags, n->file, node_attr_line(n, "clock"), 0,
                  "clock of '%s' is 0, expected Hz", u->id);
        u->clock = 1e9;
    }
}

static void build_units(struct build *b, const struct node *root) {
    struct machine *m = b->m;
    m->nunits = b->n[KIND_UNIT];
    m->unit = arena_array(b->arena, (size_t)m->nunits, sizeof *m->unit);
    for (int i = 0; i < m->nunits; i++)
        build_unit(b, i, i ? b->found[KIND_UNIT][i].node : root, b->found[KIND_UNIT][i].unit);
    m->clock = m->unit[0].clock;
    m->launch = build_number(b, root, "launch", 0);
    m->doorbell = build_number(b, root, "doorbell", 200);
}

static double build_share(struct build *b, const struct node *n, const char *attr,
                          double otherwise) {
    double v = build_number(b, n, attr, otherwise);
    if (v <= 1) return v;
    diag_line(b->diags, n->file, node_attr_line(n, attr), 0,
              "%s '%s' of '%s' is %.17g, expected a share from 0 to 1", attr, node_attr(n, attr),
              n->tag, v);
    return otherwise;
}

static void build_parts(struct build *b, const struct node *n, struct memory *y) {
    y->part = arena_array(b->arena, (size_t)n->nchildren, sizeof *y->part);
    for (int i = 0; i < n->nchildren; i++) {
        const struct node *c = n->child[i];
        struct part *p = &y->part[y->nparts++];
        *p = (struct part){node_attr(c, "id"), build_int(b, c, "min", 0, 0),
                           build_int(b, c, "max", y->banks, 0)};
        if (build_find(b, KIND_MEMORY, p->id) >= 0)
            diag_line(b->diags, c->file, c->line, 0,
                      "part '%s' has the id of a memory, expected another", p->id);
        for (int k = 0; k < i; k++)
            if (!strcmp(y->part[k].id, p->id))
                diag_line(b->diags, c->file, c->line, 0,
                          "part '%s' is defined twice, expected another id", p->id);
        if (p->min > p->max || p->max > y->banks)
            diag_line(b->diags, c->file, c->line, 0,
                      "part '%s' of %lld to %lld banks, expected a range within the memory's %lld",
                      p->id, (long long)p->min, (long long)p->max, (long long)y->banks);
    }
}

static void build_memory(struct build *b, struct memory *y, const struct found *f) {
    const struct node *n = f->node;
    *y = (struct memory){.id = f->id, .unit = f->unit, .caches = -1, .alias = -1, .at = place(n)};
    y->size = build_int(b, n, "size", -1, 1);
    y->word = build_int(b, n, "word", 1, 1);
    y->align = build_int(b, n, "align", y->word, 1);
    y->banks = build_int(b, n, "banks", 1, 1);
    y->interleave = build_int(b, n, "interleave", y->size > 0 ? y->size / y->banks : 0, 1);
    build_pass(n, &y->pass);
    y->types = build_types(b, n);
    y->caches = build_ref(b, n, "caches", KIND_MEMORY);
    y->alias = build_ref(b, n, "alias", KIND_MEMORY);
    y->line = build_int(b, n, "line", 0, 1);
    y->ways = build_int(b, n, "ways", 0, 1);
    y->rate = build_number(b, n, "rate", 0);
    y->latency = build_number(b, n, "latency", 0);
    y->usable = build_share(b, n, "usable", 0.75);
    y->hidden = build_share(b, n, "hidden", 0.9);
    y->writeback = build_share(b, n, "writeback", 1);
    y->tiles = build_share(b, n, "tiles", 0.5);
    y->refill = build_number(b, n, "refill", -1);
    y->streams = build_int(b, n, "streams", -1, 1);
    y->prefetch = build_int(b, n, "prefetch", -1, 1);
    y->serves = build_number(b, n, "serves", 0);
    y->energy_read = build_number(b, n, "energy-read", 0);
    y->energy_write = build_number(b, n, "energy-write", 0);
    y->scalable = build_int(b, n, "scalable", 0, 0);
    y->pool = node_attr(n, "pool");
    y->map = node_attr(n, "map");
    y->ports = node_attr(n, "ports");
    build_parts(b, n, y);
}

/* ---- queues, buses, syncs, states, formats ---- */

static void build_queue(struct build *b, struct queue *q, const struct found *f) {
    const char *order = node_attr(f->node, "order");
    *q = (struct queue){.id = f->id, .unit = f->unit, .nop = -1, .at = place(f->node)};
    q->depth = build_int(b, f->node, "depth", -1, 1);
    q->width = build_int(b, f->node, "width", 1, 1);
    q->data_order = order && *order == 'd';
    q->pick = build_number(b, f->node, "pick", q->data_order ? 1 : 0);
    q->contention = build_number(b, f->node, "contention", 4);
    q->window = build_int(b, f->node, "window", -1, 1);
    q->threads = build_int(b, f->node, "threads", 0, 1);
    q->registers = build_int(b, f->node, "registers", 0, 1);
    q->role = build_ref(b, f->node, "with", KIND_QUEUE);
    for (int i = 0; i < f->node->nchildren; i++)
        q->begin = build_emits(b, f->node->child[i], &q->nbegins);
}

/* Queues that the threads of another one execute as well have as many. */
static void share_threads(struct build *b) {
    for (int k = 0; k < b->m->nqueues; k++) {
        struct queue *q = &b->m->queue[k];
        const struct queue *own = q->role < 0 ? NULL : &b->m->queue[q->role];
        if (own && (own == q || own->unit != q->unit || !own->threads ||
                    node_attr(b->found[KIND_QUEUE][q->role].node, "with") || q->threads ||
                    q->registers || q->nbegins))
            diag_line(b->diags, q->at.file, q->at.line, 0,
                      "queue '%s' is executed with '%s', expected one of the same unit that has "
                      "threads, and no threads, registers or begin of its own",
                      q->id, own->id);
        else if (own)
            q->threads = own->threads;
        else
            q->role = k;
    }
}

static bool unit_within(const struct machine *m, int unit, int outer) {
    for (; unit >= 0; unit = m->unit[unit].parent)
        if (unit == outer) return true;
    return false;
}

static uint64_t queue_set(struct build *b, const struct found *f, const char *attr) {
    const char *text = node_attr(f->node, attr);
    uint64_t set = 0;
    int n;
    if (!text) return 0;
    if (!strcmp(text, "*")) {
        for (int q = 0; q < b->m->nqueues; q++)
            if (unit_within(b->m, b->m->queue[q].unit, f->unit)) set |= UINT64_C(1) << q;
        return set;
    }
    int *ref = build_refs(b, f->node, attr, KIND_QUEUE, &n, false);
    for (int i = 0; i < n; i++) set |= UINT64_C(1) << ref[i];
    return set;
}

static void build_sync(struct build *b, struct sync *s, const struct found *f) {
    static const char *const names[] = {"token", "group", "barrier", "fence", "interlock"};
    const struct node *n = f->node;
    const char *count = node_attr(n, "count"), *asynchronous = node_attr(n, "asynchronous");
    *s = (struct sync){
        .id = f->id, .unit = f->unit, .memory = -1, .barrier_unit = -1, .at = place(n)};
    for (int k = 0; k < 5; k++)
        if (!strcmp(node_attr(n, "kind"), names[k])) s->kind = (enum sync_kind)k;
    s->from = queue_set(b, f, "from");
    s->to = queue_set(b, f, "to");
    s->depth = build_int(b, n, "depth", -1, 1);
    s->count = count && !strcmp(count, "*") ? -1 : build_int(b, n, "count", 1, 1);
    s->memory = build_ref(b, n, "memory", KIND_MEMORY);
    s->size = build_int(b, n, "size", 0, 1);
    s->asynchronous = asynchronous && strchr("t1", *asynchronous);
    if (s->kind == SYNC_BARRIER)
        s->barrier_unit = node_attr(n, "unit") ? build_ref(b, n, "unit", KIND_UNIT) : f->unit;
    s->latency = build_number(b, n, "latency", 0);
    s->interval = build_number(b, n, "interval", 0);
    for (int i = 0; i < n->nchildren; i++) {
        if (!strcmp(n->child[i]->tag, "init")) {
            s->init_emit = build_emits(b, n->child[i], &s->ninit_emits);
            continue;
        }
        build_ref(b, n->child[i], "queue", KIND_QUEUE);
        if (!strcmp(n->child[i]->tag, "push"))
            s->push_emit = build_emits(b, n->child[i], &s->npush_emits);
        else
            s->pop_emit = build_emits(b, n->child[i], &s->npop_emits);
    }
    if (asynchronous && s->kind != SYNC_INTERLOCK)
        diag_line(b->diags, n->file, n->line, 0,
                  "sync '%s' of kind '%s' has the attribute 'asynchronous', expected it in an "
                  "interlock alone",
                  s->id, node_attr(n, "kind"));
    bool ends = s->kind != SYNC_BARRIER;
    if (ends && (!node_attr(n, "from") || !node_attr(n, "to")))
        diag_line(b->diags, n->file, n->line, 0,
                  "sync '%s' of kind '%s' lacks from or to, expected the queues at both ends",
                  s->id, node_attr(n, "kind"));
}

enum { MAX_OBJECT = 4096 }; /* bytes that a kernel is given */

static void build_state(struct build *b, struct state *s, const struct found *f) {
    const char *count = node_attr(f->node, "count");
    *s = (struct state){.id = f->id,
                        .unit = f->unit,
                        .init = node_attr(f->node, "init"),
                        .of = -1,
                        .at = place(f->node)};
    s->field = build_words(b, node_attr(f->node, "fields"), &s->nfields);
    s->count = count && !strcmp(count, "*") ? -1 : build_int(b, f->node, "count", 1, 1);
    s->of = build_ref(b, f->node, "of", KIND_MEMORY);
    s->size = build_int(b, f->node, "size", 0, 0);
    s->align = build_int(b, f->node, "align", 8, 1);
    if (s->align & (s->align - 1) || s->align > MAX_OBJECT || s->size > MAX_OBJECT ||
        s->size % s->align)
        diag_line(
            b->diags, f->node->file, f->node->line, 0,
            "objects of state '%s' have %lld bytes, aligned to %lld, expected a multiple of a "
            "power of 2, at most %d bytes",
            s->id, (long long)s->size, (long long)s->align, MAX_OBJECT);
    for (int i = 0; i < s->nfields; i++)
        for (int k = 0; k < i; k++)
            if (!strcmp(s->field[i], s->field[k]))
                diag_line(b->diags, f->node->file, f->node->line, 0,
                          "state '%s' has two fields '%s', expected different names", s->id,
                          s->field[i]);
}

static void build_format(struct build *b, struct format *t, const struct found *f) {
    *t = (struct format){.id = f->id, .at = place(f->node)};
    t->bits = build_expr(b, f->node, "bits", NULL);
    t->base = build_ref(b, f->node, "format", KIND_FORMAT);
    t->field = build_fields(b, f->node, &t->nfields);
}

static void build_bus(struct build *b, struct bus *s, const struct found *f) {
    *s = (struct bus){.id = f->id, .unit = f->unit, .at = place(f->node)};
    s->rate = build_number(b, f->node, "rate", 0);
    s->latency = build_number(b, f->node, "latency", 0);
    s->burst = build_number(b, f->node, "burst", 0);
    s->energy = build_number(b, f->node, "energy", 0);
    if (s->rate <= 0)
        diag_line(b->diags, f->node->file, node_attr_line(f->node, "rate"), 0,
                  "rate of bus '%s' is 0, expected bytes per cycle", s->id);
}

static void build_configure(struct build *b, struct configure *c, const struct found *f) {
    const struct node *n = f->node;
    const char *at = node_attr(n, "at");
    *c = (struct configure){.id = f->id, .unit = f->unit, .at = place(n)};
    c->queue = build_ref(b, n, "queue", KIND_QUEUE);
    c->sets = build_refs(b, n, "sets", KIND_STATE, &c->nsets, false);
    c->clobbers = build_refs(b, n, "clobbers", KIND_MEMORY, &c->nclobbers, false);
    c->at_program = at && *at == 'p';
    c->at_launch = at && *at == 'l';
    c->latency = build_expr(b, n, "latency", "1");
    c->interval = build_expr(b, n, "interval", "1");
    c->overhead = build_expr(b, n, "overhead", "0");
    c->emit = build_emits(b, n, &c->nemits);
}

static void build_cycles(struct build *b, const struct node *n) {
    struct rank_cycles *c = &b->m->cycles;
    c->statement = build_number(b, n, "statement", c->statement);
    c->bring = build_number(b, n, "bring", c->bring);
    c->product = build_number(b, n, "product", c->product);
    c->cut = build_number(b, n, "cut", c->cut);
    c->home = build_number(b, n, "home", c->home);
}

static void build_fallback(struct build *b, struct fallback *k, const struct found *f) {
    *k = (struct fallback){.language = build_language(f->node), .unit = f->unit};
    k->queue = build_ref(b, f->node, "queue", KIND_QUEUE);
    k->memory = build_refs(b, f->node, "memory", KIND_MEMORY, &k->nmemories, false);
    k->latency = build_expr(b, f->node, "latency", "1");
    k->interval = build_expr(b, f->node, "interval", "1");
    k->copy = build_number(b, f->node, "copy", -1);
    k->turn = build_number(b, f->node, "turn", -1);
    k->gather = build_number(b, f->node, "gather", -1);
    k->vector = build_number(b, f->node, "vector", -1);
    k->enter = build_number(b, f->node, "enter", 20);
    k->divide = build_number(b, f->node, "divide", 6);
    k->function = build_number(b, f->node, "function", 20);
    if (k == b->m->fallback) build_cycles(b, f->node);
    if (k == b->m->fallback) b->m->copies_hidden = build_share(b, f->node, "hidden", HIDDEN);
    if (k->language == LANGUAGE_BITS)
        diag_line(b->diags, f->node->file, f->node->line, 0,
                  "a fallback as 'bits', expected llvm, c or cuda");
}

/* ---- the whole ---- */

#define BUILD_ALL(kind, array, count, function)                                                    \
    do {                                                                                           \
        m->array = arena_array(b->arena, (size_t)b->n[kind], sizeof *m->array);                    \
        m->count = b->n[kind];                                                                     \
        for (int i = 0; i < m->count; i++) function(b, &m->array[i], &b->found[kind][i]);          \
    } while (0)

static void build_measure(struct build *b, struct measure *x, const struct found *f) {
    const struct node *n = f->node;
    *x = (struct measure){.from = build_int(b, n, "from", 0, 0),
                          .to = build_int(b, n, "to", 0, 1),
                          .threads = build_int(b, n, "threads", 1, 1),
                          .with = node_attr(n, "with"),
                          .text = n->text ? n->text : "",
                          .at = {n->file, n->text_line},
                          .col = n->text_col};
    x->param = build_ref(b, n, "param", KIND_PARAM);
    if (x->from >= x->to)
        diag_line(b->diags, n->file, node_attr_line(n, "to"), 0,
                  "a measurement from %lld to %lld, expected a range", (long long)x->from,
                  (long long)x->to);
}

static void build_texts(struct build *b) {
    struct machine *m = b->m;
    m->prelude = arena_array(b->arena, (size_t)b->n[KIND_PRELUDE], sizeof *m->prelude);
    for (int i = 0; i < b->n[KIND_PRELUDE]; i++) {
        const struct node *n = b->found[KIND_PRELUDE][i].node;
        m->prelude[m->npreludes++] = (struct text_as){build_language(n), n->text ? n->text : ""};
    }
    for (int end = 0; end < 2; end++) {
        enum kind kind = end ? KIND_END : KIND_BEGIN;
        struct emit *all = NULL;
        int n = 0, cap = 0;
        for (int i = 0; i < b->n[kind]; i++) {
            int count;
            struct emit *e = build_emits(b, b->found[kind][i].node, &count);
            for (int k = 0; k < count; k++) {
                GROW(b->arena, all, n, cap);
                all[n++] = e[k];
            }
        }
        *(end ? &m->end : &m->begin) = all;
        *(end ? &m->nends : &m->nbegins) = n;
    }
}

static bool chain_is_finite(const struct machine *m, int i) {
    for (int steps = 0; i >= 0; steps++) {
        if (steps > m->nmemories) return false;
        i = m->memory[i].caches >= 0 ? m->memory[i].caches : m->memory[i].alias;
    }
    return true;
}

static void check_cycles(struct build *b) {
    struct machine *m = b->m;
    for (int i = 0; i < m->nmemories; i++)
        if (!chain_is_finite(m, i)) {
            diag_line(
                b->diags, m->memory[i].at.file, m->memory[i].at.line, 0,
                "memory '%s' caches itself or is its own alias, through others, expected no cycle",
                m->memory[i].id);
            m->memory[i].caches = m->memory[i].alias = -1;
        }
    for (int i = 0; i < m->nformats; i++) {
        int steps = 0;
        for (int f = i; f >= 0 && steps <= m->nformats; f = m->format[f].base) steps++;
        if (steps <= m->nformats) continue;
        diag_line(b->diags, m->format[i].at.file, m->format[i].at.line, 0,
                  "format '%s' builds on itself, expected no cycle", m->format[i].id);
        m->format[i].base = -1;
    }
}

static bool memory_is_used(const struct machine *m, int y) {
    for (int i = 0; i < m->nmemories; i++)
        if (m->memory[i].caches == y) return true;
    for (int i = 0; i < m->nfallbacks; i++)
        for (int k = 0; k < m->fallback[i].nmemories; k++)
            if (m->fallback[i].memory[k] == y) return true;
    for (int i = 0; i < m->ninstrs; i++)
        for (int k = 0; k < m->instr[i].noperands; k++)
            for (int j = 0; j < m->instr[i].operand[k].nmemories; j++)
                if (m->instr[i].operand[k].memory[j] == y) return true;
    return false;
}

static int unit_depth(const struct machine *m, int unit) {
    int depth = 0;
    while ((unit = m->unit[unit].parent) >= 0) depth++;
    return depth;
}

/* used, then outermost, then unlimited or largest */
static int find_home(const struct machine *m) {
    int best = -1;
    for (int i = 0; i < m->nmemories; i++) {
        const struct memory *y = &m->memory[i], *o = best < 0 ? NULL : &m->memory[best];
        if (y->caches >= 0 || y->alias >= 0 || y->pass != PASS_POINTER) continue;
        if (o) {
            int used = memory_is_used(m, i) - memory_is_used(m, best);
            int outer = unit_depth(m, o->unit) - unit_depth(m, y->unit);
            bool larger = o->size >= 0 && (y->size < 0 || y->size > o->size);
            if (used < 0 || (used == 0 && (outer < 0 || (outer == 0 && !larger)))) continue;
        }
        best = i;
    }
    return best;
}

static void find_nops(struct machine *m) {
    for (int i = 0; i < m->ninstrs; i++) {
        const struct instr *x = &m->instr[i];
        if (!x->is_move && !x->noperands && x->queue >= 0 && m->queue[x->queue].nop < 0)
            m->queue[x->queue].nop = i;
    }
}

static void check_shares(struct build *b, const struct loader *l) {
    for (int i = 0; l && i < l->nshares; i++) {
        bool found = false;
        for (int k = 0; k < KIND_COUNT; k++)
            found = found || build_find(b, (enum kind)k, l->share[i].id) >= 0;
        if (!found)
            diag_line(b->diags, l->share[i].file, l->share[i].line, 0,
                      "nothing outside has the id '%s' to share, expected an element with it",
                      l->share[i].id);
    }
}

/* A line takes as long as its bytes at the rate of the memory behind, the first of several its
 * latency more. */
static void default_refills(struct machine *m) {
    for (int i = 0; i < m->nmemories; i++) {
        struct memory *y = &m->memory[i];
        double rate = y->caches >= 0 ? m->memory[y->caches].rate : 0;
        if (y->refill >= 0) continue;
        y->refill = rate > 0 ? (double)(y->line > 0 ? y->line : 64) / rate : 0;
        y->first = rate > 0 ? m->memory[y->caches].latency : 0;
    }
}

static void build_all(struct build *b, const struct node *root, const struct loader *l) {
    struct machine *m = b->m;
    add_found(b, KIND_UNIT, root, -1);
    b->found[KIND_UNIT][0].id = NULL;
    collect(b, root, 0);
    check_shares(b, l);
    if (!check_counts(b, root)) return;
    build_params(b, root);
    build_units(b, root);
    BUILD_ALL(KIND_FEATURE, feature, nfeatures, build_feature);
    BUILD_ALL(KIND_MEMORY, memory, nmemories, build_memory);
    default_refills(m);
    BUILD_ALL(KIND_BUS, bus, nbuses, build_bus);
    BUILD_ALL(KIND_QUEUE, queue, nqueues, build_queue);
    share_threads(b);
    BUILD_ALL(KIND_SYNC, sync, nsyncs, build_sync);
    BUILD_ALL(KIND_STATE, state, nstates, build_state);
    BUILD_ALL(KIND_FORMAT, format, nformats, build_format);
    BUILD_ALL(KIND_CONFIGURE, configure, nconfigures, build_configure);
    m->copies_hidden = HIDDEN;
    m->cycles = (struct rank_cycles){
        .statement = 100, .bring = 0.32, .product = 0.08, .cut = 1.76, .home = 4};
    BUILD_ALL(KIND_FALLBACK, fallback, nfallbacks, build_fallback);
    BUILD_ALL(KIND_MEASURE, measure, nmeasures, build_measure);
    m->parameters = b->parameters ? b->parameters->file : NULL;
    m->needs_features = build_features(b, root, "needs");
    m->code_features =
        node_attr(root, "code-needs") ? build_features(b, root, "code-needs") : m->needs_features;
    check_cycles(b);
    build_texts(b);
    build_instrs(b);
    find_nops(m);
    m->home = find_home(m);
    m->home_align = machine_home_align(m);
    if (m->home < 0)
        diag_line(b->diags, root->file, root->line, 0,
                  "machine '%s' has no memory for a program's buffers, expected one that is no "
                  "cache and passed by pointer",
                  m->name);
}

static long build_priority(const char *text) {
    long v = text ? strtol(text, NULL, 10) : 0;
    return v < -1000000 ? -1000000 : v > 1000000 ? 1000000 : v;
}

struct machine *machine_build(struct arena *arena, const struct node *root,
                              const struct bindings *set, const struct loader *l,
                              struct diags *diags) {
    struct machine *m = memory_array(1, sizeof *m);
    struct build b = {.m = m, .diags = diags, .set = set, .parameters = l ? l->parameters : NULL};
    if (arena)
        m->arena = *arena;
    else
        arena_init(&m->arena);
    b.arena = &m->arena;
    int before = diags->errors;
    m->tree = root;
    m->name = node_attr(root, "name");
    m->title = node_attr(root, "title") ? node_attr(root, "title") : m->name;
    m->file = root->file;
    m->model = node_attr(root, "model");
    m->model_of = node_attr(root, "model-of");
    m->home = -1;
    const char *priority = node_attr(root, "priority");
    m->priority = (int)build_priority(priority);
    build_all(&b, root, l);
    if (diags->errors == before) return m;
    machine_free(m);
    return NULL;
}

void machine_free(struct machine *m) {
    if (!m) return;
    struct arena a = m->arena;
    arena_free(&a);
    free(m);
}
