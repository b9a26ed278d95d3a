#include "scheduler/clock/dryrun.h"
#include "scheduler/schedule/schedule_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

enum { DRYRUN_AXES = 16 };

/* ---- what instructions use ---- */
struct use {
    int32_t word;
    bool reads, writes;
};

struct stream { /* of one memory */
    struct use *use;
    int64_t *issue; /* [nissues + 1] first use of each instruction */
    int64_t n, cap, nissues, issue_cap;
};

struct words { /* of one buffer in one memory: word of each element; NULL: not used there */
    int32_t *of;
};

struct bound { /* semantics with the sizes of the last issue */
    struct program *program;
    int64_t *size;
};

struct dry {
    const struct schedule *s;
    const struct machine *m;
    const struct program *p;
    struct arena arena;
    struct dryrun *out;
    int64_t left;
    bool failed;
    int64_t *var;
    struct words *words; /* [nmemories][nbuffers] */
    int64_t *nwords;     /* [nmemories] */
    struct stream *stream;
    struct bound *bound; /* [ninstrs] */
    int **buffer_of;     /* [nmemories][words] */
    bool *goes_home;     /* [nbuffers] some move brings it home */
};

static int64_t word_bytes(const struct dry *d, int memory) {
    return d->m->memory[memory].word > 0 ? d->m->memory[memory].word : 16;
}

/* Word of each element as it lies in the buffer's home; returned: one more than the last. */
static int64_t home_words(const struct dry *d, int memory, int buffer, int32_t *of) {
    const struct buffer *b = &d->p->buffer[buffer];
    int home = schedule_home(d->s, buffer);
    const struct place *p = home >= 0 ? &d->s->place[home] : NULL;
    int64_t stride[MAX_PLACES], index[MAX_DIMS] = {0}, size = (int64_t)type_size(b->type), most = 0;
    if (p && p->layout) layout_strides(p->layout, b->ndims, p->extent, stride);
    for (int64_t e = 0; e < b->elements; e++) {
        int64_t at =
            p && p->layout ? layout_offset(p->layout, b->ndims, p->extent, stride, index) : e;
        of[e] = (int32_t)(at * size / word_bytes(d, memory));
        if (of[e] > most) most = of[e];
        for (int k = b->ndims - 1; k >= 0 && ++index[k] == b->extent[k]; k--) index[k] = 0;
    }
    return most + 1;
}

/* Words that hold elements are numbered as they lie. */
static bool number_words(struct dry *d, int memory, int buffer) {
    const struct buffer *b = &d->p->buffer[buffer];
    struct words *w = &d->words[memory * d->p->nbuffers + buffer];
    if (w->of) return true;
    d->left -= b->elements;
    if (d->left < 0) return false;
    w->of = arena_array(&d->arena, (size_t)b->elements + 1, sizeof *w->of);
    int64_t range = home_words(d, memory, buffer, w->of), total = d->nwords[memory];
    int32_t *number = memory_array((size_t)range + 1, sizeof *number);
    for (int64_t e = 0; e < b->elements; e++) number[w->of[e]] = 1;
    for (int64_t k = 0; k < range; k++)
        if (number[k]) number[k] = (int32_t)total++;
    for (int64_t e = 0; e < b->elements; e++) w->of[e] = number[w->of[e]];
    free(number);
    int *grown = arena_array(&d->arena, (size_t)total + 1, sizeof *grown);
    if (d->nwords[memory])
        memcpy(grown, d->buffer_of[memory], (size_t)d->nwords[memory] * sizeof *grown);
    for (int64_t k = d->nwords[memory]; k < total; k++) grown[k] = buffer;
    d->buffer_of[memory] = grown;
    d->nwords[memory] = total;
    return true;
}

static void add_use(struct dry *d, int memory, int32_t word, bool reads, bool writes) {
    struct stream *t = &d->stream[memory];
    for (int64_t k = t->n - 1; k >= t->issue[t->nissues] && k >= t->n - 4; k--) {
        if (t->use[k].word != word) continue;
        t->use[k].reads |= reads;
        t->use[k].writes |= writes;
        return;
    }
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 4096;
        t->use = memory_grow(t->use, (size_t)t->cap * sizeof *t->use);
    }
    t->use[t->n++] = (struct use){word, reads, writes};
}

static void next_issue(struct dry *d) {
    for (int m = 0; m < d->m->nmemories; m++) {
        struct stream *t = &d->stream[m];
        if (t->nissues + 2 >= t->issue_cap) {
            t->issue_cap = t->issue_cap ? 2 * t->issue_cap : 1024;
            t->issue = memory_grow(t->issue, (size_t)t->issue_cap * sizeof *t->issue);
            if (t->nissues == 0) t->issue[0] = 0;
        }
        t->issue[++t->nissues] = t->n;
    }
}

/* ---- one instruction ---- */
struct walk { /* the instances that it executes */
    int axis[DRYRUN_AXES], n;
    int64_t base[MAX_AXES], extent[DRYRUN_AXES];
};

static bool moves_with(const struct dry *d, const struct access *a, int axis) {
    for (int k = 0; k < d->p->buffer[a->buffer].ndims; k++)
        if (access_coef(d->p, a, k, axis)) return true;
    return false;
}

/* Element of the access; -1: outside. */
static int64_t element_of(const struct dry *d, const struct access *a, const int64_t *at) {
    const struct buffer *b = &d->p->buffer[a->buffer];
    int64_t e = 0;
    for (int k = 0; k < b->ndims; k++) {
        int64_t x = access_coef(d->p, a, k, d->p->naxes);
        for (int i = 0; i < d->p->naxes; i++) x += access_coef(d->p, a, k, i) * at[i];
        if (x < 0 || x >= b->extent[k]) return -1;
        e = e * b->extent[k] + x;
    }
    return e;
}

/* How far the element moves with each axis of the walk, where all of it is inside of the buffer. */
static bool steps_of(const struct dry *d, const struct access *a, const struct walk *w,
                     int64_t *step) {
    const struct buffer *b = &d->p->buffer[a->buffer];
    memset(step, 0, sizeof *step * DRYRUN_AXES);
    for (int k = 0; k < b->ndims; k++) {
        int64_t lo = access_coef(d->p, a, k, d->p->naxes), hi;
        for (int i = 0; i < d->p->naxes; i++) lo += access_coef(d->p, a, k, i) * w->base[i];
        hi = lo;
        for (int x = 0; x < w->n; x++) {
            int64_t c = access_coef(d->p, a, k, w->axis[x]), reach = c * (w->extent[x] - 1);
            lo += reach < 0 ? reach : 0;
            hi += reach > 0 ? reach : 0;
            step[x] = step[x] * b->extent[k] + c;
        }
        if (lo < 0 || hi >= b->extent[k]) return false;
    }
    return true;
}

/* `memory` -1: the operand stands at home. */
static void use_access(struct dry *d, const struct walk *w, const struct access *a, int memory,
                       bool reads, bool writes) {
    struct walk mine = {.n = 0};
    int64_t at[MAX_AXES], x[DRYRUN_AXES] = {0}, step[DRYRUN_AXES];
    double bytes = (double)type_size(d->p->buffer[a->buffer].type);
    if (memory >= 0 && !number_words(d, memory, a->buffer)) d->failed = true;
    memcpy(at, w->base, sizeof at);
    for (int k = 0; k < w->n; k++)
        if (moves_with(d, a, w->axis[k])) {
            mine.axis[mine.n] = w->axis[k];
            mine.extent[mine.n++] = w->extent[k];
        }
    memcpy(mine.base, w->base, sizeof mine.base);
    bool inside = steps_of(d, a, &mine, step);
    int64_t e = element_of(d, a, at);
    const int32_t *of = memory >= 0 ? d->words[memory * d->p->nbuffers + a->buffer].of : NULL;
    while (!d->failed) {
        d->failed |= --d->left < 0;
        if (e >= 0 && memory >= 0) add_use(d, memory, of[e], reads, writes);
        if (e >= 0 && memory < 0) {
            d->out->read += reads ? bytes : 0;
            d->out->written += writes ? bytes : 0;
        }
        int k = mine.n - 1;
        for (; k >= 0 && x[k] + 1 == mine.extent[k]; k--) {
            at[mine.axis[k]] -= x[k];
            e -= x[k] * step[k];
            x[k] = 0;
        }
        if (k < 0) return;
        x[k]++;
        at[mine.axis[k]]++;
        e = inside ? e + step[k] : element_of(d, a, at);
    }
}

static bool walk_of(struct dry *d, const struct issue_node *n, const struct program *bound,
                    struct walk *w) {
    const struct instr *in = &d->m->instr[n->instr];
    int naxes = kernel_axis_count(in->semantics);
    w->n = 0;
    for (int a = 0; a < d->p->naxes; a++) w->base[a] = n->base[a] ? sx_eval(n->base[a], d->var) : 0;
    for (int x = 0; x < naxes && x < DRYRUN_AXES; x++) {
        int a = n->axis[x], b = 0;
        if (a < 0) continue;
        const char *name = kernel_axis_at(in->semantics, x)->name;
        while (b < bound->naxes && strcmp(bound->axis[b].name, name) != 0) b++;
        if (b == bound->naxes) return false;
        int64_t extent = bound->axis[b].extent, rest = d->p->axis[a].extent - w->base[a];
        w->axis[w->n] = a;
        w->extent[w->n++] = extent < rest ? extent : rest;
        if (rest <= 0) return false;
    }
    return naxes <= DRYRUN_AXES;
}

static bool overwrites(const struct dry *d, const struct issue_node *n, int operand) {
    const struct instr *in = &d->m->instr[n->instr];
    for (int k = 0; k < instr_flag_count(in); k++)
        if (instr_flag_operand(in, k) == operand) return sx_eval(n->flag[k], d->var) == 0;
    return in->operand[operand].role == ROLE_OUT;
}

static const struct program *bind(struct dry *d, const struct issue_node *n) {
    const struct instr *in = &d->m->instr[n->instr];
    struct bound *b = &d->bound[n->instr];
    bool same = b->program != NULL;
    if (!b->size) b->size = arena_array(&d->arena, (size_t)in->nranged + 1, sizeof *b->size);
    for (int k = 0; k < in->nranged; k++) {
        int64_t size = sx_eval(n->size[k], d->var);
        same &= b->size[k] == size;
        b->size[k] = size;
    }
    if (same) return b->program;
    struct diags ignored;
    diags_init(&ignored);
    if (b->program) program_free(b->program);
    b->program = instr_bind(d->m, in, b->size, &ignored);
    diags_free(&ignored);
    return b->program;
}

static void dry_compute(struct dry *d, const struct issue_node *n) {
    const struct instr *in = &d->m->instr[n->instr];
    const struct stmt *s = &d->p->stmt[n->stmt];
    const struct program *bound = bind(d, n);
    struct walk w;
    d->failed |= !bound || !walk_of(d, n, bound, &w);
    for (int o = 0; o < in->noperands && !d->failed; o++) {
        if (n->arg[o].place < 0) continue;
        const struct place *p = &d->s->place[n->arg[o].place];
        int memory = p->keep == KEEP_LOCAL ? p->memory : -1;
        if (in->operand[o].role == ROLE_IN) {
            for (int r = 0; r < s->nreads; r++)
                if (s->read[r].buffer == p->buffer)
                    use_access(d, &w, &s->read[r], memory, true, false);
        } else {
            use_access(d, &w, &s->dst, memory, !overwrites(d, n, o) && s->combine != COMBINE_SET,
                       true);
        }
    }
    next_issue(d);
}

static void dry_nodes(struct dry *d, const struct node *node, int n) {
    for (int k = 0; k < n && !d->failed; k++) {
        if (node[k].kind == NODE_ISSUE && node[k].issue->stmt >= 0) dry_compute(d, node[k].issue);
        if (node[k].kind != NODE_LOOP) continue;
        const struct loop_node *l = node[k].loop;
        int64_t lo = sx_eval(l->lo, d->var), hi = sx_eval(l->hi, d->var);
        for (int64_t x = lo; x < hi && !d->failed; x += l->step) {
            d->failed |= --d->left < 0;
            d->var[l->var] = x;
            dry_nodes(d, l->body, l->nbody);
        }
    }
}

/* ---- which buffers are brought home; what is not followed ---- */
static void find_moves(struct dry *d, const struct node *node, int n) {
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_LOOP) {
            const struct loop_node *l = node[k].loop;
            d->failed |= l->kind == LOOP_PARALLEL && d->m->unit[l->unit].count > 1;
            find_moves(d, l->body, l->nbody);
        }
        if (node[k].kind != NODE_ISSUE || node[k].issue->stmt >= 0) continue;
        const struct issue_node *i = node[k].issue;
        const struct instr *in = &d->m->instr[i->instr];
        int local = 0;
        for (int o = 0; o < in->noperands; o++) {
            if (i->arg[o].place < 0) continue;
            const struct place *p = &d->s->place[i->arg[o].place];
            local += p->keep == KEEP_LOCAL;
            if (p->keep != KEEP_LOCAL && in->operand[o].role != ROLE_IN)
                d->goes_home[p->buffer] = true;
        }
        d->failed |= local > 1;
    }
}

/* ---- eviction by next use ---- */
struct entry {
    int64_t next; /* number of the use; INT64_MAX: none */
    int32_t word;
};

struct held {
    int64_t next, pinned;
    bool resident, dirty;
};

struct memory_run {
    struct dry *d;
    int memory;
    int64_t bytes, used, size;
    struct held *word;
    struct entry
        *heap; /* farthest next use on top; entries that are no longer true stay until met */
    int64_t n, cap;
};

static void heap_push(struct memory_run *r, struct entry e) {
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 1024;
        r->heap = memory_grow(r->heap, (size_t)r->cap * sizeof *r->heap);
    }
    int64_t at = r->n++;
    for (; at > 0 && r->heap[(at - 1) / 2].next < e.next; at = (at - 1) / 2)
        r->heap[at] = r->heap[(at - 1) / 2];
    r->heap[at] = e;
}

static struct entry heap_pop(struct memory_run *r) {
    struct entry top = r->heap[0], last = r->heap[--r->n];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < r->n; at = child) {
        if (child + 1 < r->n && r->heap[child + 1].next > r->heap[child].next) child++;
        if (r->heap[child].next <= last.next) break;
        r->heap[at] = r->heap[child];
    }
    r->heap[at] = last;
    return top;
}

static void write_back(struct memory_run *r, int32_t word, bool again) {
    struct held *s = &r->word[word];
    if (s->dirty && (again || r->d->goes_home[r->d->buffer_of[r->memory][word]]))
        r->d->out->written += (double)r->bytes;
    s->dirty = false;
}

static void make_room(struct memory_run *r, int64_t issue) {
    struct entry kept[64];
    int nkept = 0;
    while (r->used + r->bytes > r->size && r->n > 0 && nkept < 64) {
        struct entry e = heap_pop(r);
        struct held *s = &r->word[e.word];
        if (!s->resident || s->next != e.next) continue;
        if (s->pinned == issue) {
            kept[nkept++] = e;
            continue;
        }
        write_back(r, e.word, e.next != INT64_MAX);
        s->resident = false;
        r->used -= r->bytes;
    }
    while (nkept > 0) heap_push(r, kept[--nkept]);
}

static void use_word(struct memory_run *r, const struct use *u, int64_t issue, int64_t next) {
    struct held *s = &r->word[u->word];
    s->pinned = issue;
    if (!s->resident) {
        make_room(r, issue);
        s->resident = true;
        r->used += r->bytes;
        if (u->reads) r->d->out->read += (double)r->bytes;
    }
    s->dirty |= u->writes;
    s->next = next;
    heap_push(r, (struct entry){next, u->word});
}

static void run_memory(struct dry *d, int memory) {
    const struct stream *t = &d->stream[memory];
    struct memory_run r = {.d = d, .memory = memory, .bytes = word_bytes(d, memory)};
    size_t nwords = (size_t)d->nwords[memory];
    int64_t *next = memory_bytes(((size_t)t->n + 1) * sizeof *next),
            *last = memory_bytes((nwords + 1) * sizeof *last);
    r.size = d->m->memory[memory].size >= 0 ? d->m->memory[memory].size : INT64_MAX / 2;
    r.word = memory_array(nwords + 1, sizeof *r.word);
    for (size_t k = 0; k < nwords; k++) last[k] = INT64_MAX;
    for (int64_t k = t->n - 1; k >= 0; k--) {
        next[k] = last[t->use[k].word];
        last[t->use[k].word] = k;
    }
    for (size_t k = 0; k < nwords; k++) r.word[k].pinned = -1;
    for (int64_t i = 0; i < t->nissues; i++)
        for (int64_t k = t->issue[i]; k < t->issue[i + 1]; k++)
            use_word(&r, &t->use[k], i, next[k]);
    for (size_t k = 0; k < nwords; k++)
        if (r.word[k].resident) write_back(&r, (int32_t)k, false);
    free(next);
    free(last);
    free(r.word);
    free(r.heap);
}

/* ---- all ---- */
static void open_dry(struct dry *d) {
    size_t nm = (size_t)d->m->nmemories + 1, nb = (size_t)d->p->nbuffers + 1;
    arena_init(&d->arena);
    d->var = arena_array(&d->arena, (size_t)d->s->nvars + 1, sizeof *d->var);
    d->words = arena_array(&d->arena, nm * nb, sizeof *d->words);
    d->nwords = arena_array(&d->arena, nm, sizeof *d->nwords);
    d->buffer_of = arena_array(&d->arena, nm, sizeof *d->buffer_of);
    d->stream = arena_array(&d->arena, nm, sizeof *d->stream);
    d->bound = arena_array(&d->arena, (size_t)d->m->ninstrs + 1, sizeof *d->bound);
    d->goes_home = arena_array(&d->arena, nb, sizeof *d->goes_home);
    next_issue(d);
    for (int m = 0; m < d->m->nmemories; m++) d->stream[m].nissues = 0;
}

bool dryrun_traffic(const struct schedule *s, int64_t uses, struct dryrun *out) {
    struct dry d = {.s = s, .m = s->machine, .p = s->program, .out = out, .left = uses};
    *out = (struct dryrun){0};
    open_dry(&d);
    find_moves(&d, s->run.node, s->run.nnodes);
    dry_nodes(&d, s->run.node, s->run.nnodes);
    for (int m = 0; m < d.m->nmemories; m++) {
        out->uses += d.stream[m].n;
        if (!d.failed && d.stream[m].n) run_memory(&d, m);
        free(d.stream[m].use);
        free(d.stream[m].issue);
    }
    for (int k = 0; k < d.m->ninstrs; k++)
        if (d.bound[k].program) program_free(d.bound[k].program);
    arena_free(&d.arena);
    return !d.failed && out->uses > 0;
}
