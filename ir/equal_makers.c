/* What statements read of temporaries that constants alone decide is as it was made, wherever it
 * was made before: all that writes them stands before, at the top level, and reads nothing but
 * constants and such temporaries. So copies of those who make them, in the same order, may stand
 * right before the statements, which read what the copies make. Stretches that read the same values
 * in different temporaries, or in those and in the constants, are compared so. */
#include "ir/chain.h"

#include <string.h>

/* By buffer: do constants alone decide what the items find in it? */
static bool *decided(struct arena *arena, const struct program *p, struct items w) {
    bool *other = arena_array(arena, (size_t)p->nbuffers + 1, sizeof *other);
    bool *is = arena_array(arena, (size_t)p->nbuffers + 1, sizeof *is);
    for (int b = 0; b < p->nbuffers; b++)
        other[b] = p->buffer[b].role != ROLE_TEMP || p->buffer[b].size || program_held(p, b);
    for (int i = 0; i < p->nitems; i++) {
        bool plain = i < w.from && p->item[i].kind == ITEM_STMT && !p->stmt[p->item[i].stmt].scope;
        if (p->item[i].kind == ITEM_STMT)
            other[p->stmt[p->item[i].stmt].dst.buffer] |= !plain;
        else
            for (int b = 0; b < p->nbuffers; b++) other[b] |= item_touches(p, &p->item[i], b);
    }
    for (bool again = true; again;) {
        again = false;
        for (int b = 0; b < p->nbuffers; b++) is[b] = p->buffer[b].role == ROLE_CONST;
        for (int i = 0; i < w.from; i++) {
            if (p->item[i].kind != ITEM_STMT) continue;
            const struct stmt *s = &p->stmt[p->item[i].stmt];
            bool steady = !other[s->dst.buffer];
            for (int r = 0; r < s->nreads; r++) steady &= is[s->read[r].buffer];
            if (steady) is[s->dst.buffer] = true;
            again |= !steady && !other[s->dst.buffer];
            other[s->dst.buffer] |= !steady;
        }
    }
    return is;
}

static bool need_reads(const struct program *p, const struct stmt *s, const bool *is, bool *need) {
    bool any = false;
    for (int r = 0; r < s->nreads; r++) {
        int b = s->read[r].buffer;
        bool temporary = is[b] && p->buffer[b].role == ROLE_TEMP;
        need[b] |= temporary;
        any |= temporary;
    }
    return any;
}

/* A copy of the buffer that only the copies of statements see. */
static void add_copy(struct arena *arena, struct program *p, int buffer, const char *suffix) {
    struct buffer b = p->buffer[buffer];
    b.name = arena_printf(arena, "%s %s", b.name, suffix);
    p->buffer[p->nbuffers++] = b;
}

/* The statement with copies in place of buffers; as item `at`. */
static void add_stmt(struct arena *arena, struct program *p, int at, int stmt, const int *copy,
                     bool maker) {
    struct stmt s = p->stmt[stmt];
    s.read = arena_copy(arena, s.read, (size_t)s.nreads * sizeof *s.read);
    for (int r = 0; r < s.nreads; r++)
        if (copy[s.read[r].buffer] >= 0) s.read[r].buffer = copy[s.read[r].buffer];
    if (maker) s.dst.buffer = copy[s.dst.buffer];
    p->stmt[p->nstmts] = s;
    p->item[at] = (struct item){.kind = ITEM_STMT, .stmt = p->nstmts++};
}

static int *copies(struct arena *arena, struct program *p, const bool *need, const char *suffix) {
    int n = p->nbuffers, *copy = arena_array(arena, (size_t)n + 1, sizeof *copy);
    p->buffer = arena_extended(arena, p->buffer, (size_t)n, (size_t)n, sizeof *p->buffer);
    for (int b = 0; b < n; b++) {
        copy[b] = need[b] ? p->nbuffers : -1;
        if (need[b]) add_copy(arena, p, b, suffix);
    }
    return copy;
}

/* Who makes what the items read, and what that is made of. */
static int find_makers(const struct program *p, struct items w, const bool *is, bool *need,
                       bool *maker) {
    int n = 0;
    for (int i = w.from - 1; i >= 0; i--) {
        if (p->item[i].kind != ITEM_STMT) continue;
        const struct stmt *s = &p->stmt[p->item[i].stmt];
        maker[i] = need[s->dst.buffer];
        if (maker[i]) need_reads(p, s, is, need);
        n += maker[i];
    }
    return n;
}

bool items_with_makers(struct arena *arena, struct program *p, struct items *w,
                       const char *suffix) {
    const bool *is = decided(arena, p, *w);
    bool *need = arena_array(arena, (size_t)p->nbuffers + 1, sizeof *need), any = false;
    bool *maker = arena_array(arena, (size_t)w->from + 1, sizeof *maker);
    for (int i = w->from; i < w->to; i++) {
        if (p->item[i].kind != ITEM_STMT) return false;
        any |= need_reads(p, &p->stmt[p->item[i].stmt], is, need);
    }
    if (!any) return false;
    int n = find_makers(p, *w, is, need, maker), all = n + w->to - w->from, at = w->from;
    const int *copy = copies(arena, p, need, suffix);
    const struct item *old = p->item;
    p->stmt = arena_extended(arena, p->stmt, (size_t)p->nstmts, (size_t)all, sizeof *p->stmt);
    p->item = arena_array(arena, (size_t)(p->nitems + n) + 1, sizeof *p->item);
    memcpy(p->item, old, (size_t)w->from * sizeof *old);
    memcpy(p->item + w->to + n, old + w->to, (size_t)(p->nitems - w->to) * sizeof *old);
    p->nitems += n;
    for (int i = 0; i < w->to; i++)
        if (i >= w->from || maker[i]) add_stmt(arena, p, at++, old[i].stmt, copy, i < w->from);
    w->to += n;
    return true;
}
