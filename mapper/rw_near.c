/* The part of a program that rewrites of one statement ask about. Each try copies a program, and a
 * new axis widens every access of it: of all statements of a network that is quadratic in their
 * number, of those near each one it is not. Buffers and axes are the whole program's, so indices
 * stay what they are. */
#include "mapper/rewrite_int.h"

#include <limits.h>
#include <string.h>

/* As far back as constants made of constants are followed (ir/program_steady.c), which is further
 * than ranges of values (range.c); neighbours, among which sums begin. */
enum { WRITERS_BACK = 8, BESIDE = MAX_DERIVATION };

/* Axes of steps are the last ones: new ones come before them, and then indices move. */
static bool all_plain(const struct program *p) {
    for (int i = 0; i < p->nitems; i++)
        if (p->item[i].kind != ITEM_STMT || p->item[i].stmt != i) return false;
    return p->nitems == p->nstmts && (p->naxes == 0 || !p->axis[p->naxes - 1].sequential);
}

static void reach(int *buffer, int level) {
    if (*buffer > level) *buffer = level;
}

static void reach_touched(const struct stmt *s, int *buffer, int level) {
    reach(&buffer[s->dst.buffer], level);
    for (int r = 0; r < s->nreads; r++) reach(&buffer[s->read[r].buffer], level);
}

/* Of each buffer how many writers back from the statement it is touched; INT_MAX: further. */
static int *levels_of(struct arena *a, const struct program *p, int stmt) {
    int *buffer = arena_array(a, (size_t)p->nbuffers, sizeof *buffer);
    for (int b = 0; b < p->nbuffers; b++) buffer[b] = INT_MAX;
    reach_touched(&p->stmt[stmt], buffer, 0);
    for (int back = 0; back < WRITERS_BACK; back++)
        for (int s = 0; s < p->nstmts; s++)
            if (buffer[p->stmt[s].dst.buffer] <= back) reach_touched(&p->stmt[s], buffer, back + 1);
    return buffer;
}

/* Its neighbours, who writes what it reads, back to WRITERS_BACK writers, and all that touch what
 * it or the writer before it touches. */
static bool is_near(const struct program *p, const int *level, const bool *written, int stmt,
                    int s) {
    const struct stmt *x = &p->stmt[s];
    bool near = (s >= stmt - BESIDE && s <= stmt + BESIDE) || level[x->dst.buffer] <= WRITERS_BACK;
    for (int r = 0; r < x->nreads && !near; r++)
        near = written[x->read[r].buffer] && level[x->read[r].buffer] <= 1;
    return near;
}

void near_open(struct near *near, struct arena *a, const struct program *p, int stmt) {
    *near = (struct near){.whole = p, .stmt = stmt};
    if (!all_plain(p)) return;
    int *level = levels_of(a, p, stmt);
    bool *written = arena_array(a, (size_t)p->nbuffers, sizeof *written);
    const struct stmt **kept = arena_array(a, (size_t)p->nstmts, sizeof *kept);
    near->of = arena_array(a, (size_t)p->nstmts, sizeof *near->of);
    for (int s = 0; s < p->nstmts; s++) written[p->stmt[s].dst.buffer] = true;
    for (int s = 0; s < p->nstmts; s++) {
        if (!is_near(p, level, written, stmt, s)) continue;
        if (s == stmt) near->stmt = near->n;
        kept[near->n] = &p->stmt[s];
        near->of[near->n++] = s;
    }
    near->part = program_of_stmts(p, kept, near->n);
}

void near_close(struct near *near) {
    if (near->part) program_free(near->part);
}

const struct program *near_program(const struct near *near) {
    return near->part ? near->part : near->whole;
}

int near_stmt(const struct near *near, const struct program *q, int from, int to, int stmt) {
    if (!near->part || stmt < 0) return stmt;
    int more = q->nstmts - near->n;
    if (stmt >= to) return near->of[stmt - more] + more;
    return stmt < from ? near->of[stmt] : near->of[from] + stmt - from;
}

struct program *near_whole(const struct near *near, const struct program *q, int from, int to) {
    const struct program *p = near->whole;
    if (!near->part) return program_copy(q);
    struct program *wide = q->naxes > p->naxes ? program_copy(p) : NULL;
    int more = q->nstmts - near->n, n = 0, next = 0;
    struct arena scratch;
    arena_init(&scratch);
    const struct stmt **stmt = arena_array(&scratch, (size_t)(p->nstmts + more), sizeof *stmt);
    for (int a = p->naxes; a < q->naxes; a++)
        program_add_axis(wide, q->axis[a].name, q->axis[a].extent, a);
    if (wide) p = wide;
    for (int s = 0; s < p->nstmts; s++) {
        bool own = next < near->n && near->of[next] == s;
        if (!own) stmt[n++] = &p->stmt[s];
        if (own && next < from) stmt[n++] = &q->stmt[next];
        if (own && next == from)
            for (int k = from; k < to; k++) stmt[n++] = &q->stmt[k];
        if (own && next >= to - more) stmt[n++] = &q->stmt[next + more];
        next += own;
    }
    struct program *whole = program_of_stmts(q, stmt, n);
    if (wide) program_free(wide);
    arena_free(&scratch);
    return whole;
}
