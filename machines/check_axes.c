/* Axes of instructions and moves of which the schedule cannot choose how long they are, and moves
 * that copy in a way that no plan knows. */
#include "machines/check.h"
#include "machines/move.h"
#include <string.h>

static const struct kernel_axis *axis_named(const struct kernel *k, const char *name) {
    for (int i = 0; i < k->nitems; i++)
        if (k->item[i].kind == KITEM_AXIS && !strcmp(k->item[i].axis->name, name))
            return k->item[i].axis;
    return NULL;
}

static void warn_axis(const struct instr *x, const char *axis, int i, int64_t by, struct diags *d) {
    const struct kernel_axis *a = axis_named(x->semantics, axis);
    const char *size = x->semantics->param[x->ranged[i]].name;
    int line, col;
    if (!a) return;
    source_place(x->semantics->source, a->extent->at, &line, &col);
    diag_warn(d, x->semantics->source->file, line, col,
              "one more of '%s' makes axis '%s' of '%s' %lld longer, so the schedule cannot choose "
              "how long it is: %s; expected the size itself, with a step (%s=%lld..n step %lld)",
              size, axis, x->id, (long long)by,
              x->is_move ? "nothing uses the move" : "only the largest size is used", size,
              (long long)by, (long long)by);
}

/* Sizes are chosen from the lengths of axes: one more of a size is one more of an axis. */
static bool axes_are_sizes(const struct machine *m, const struct instr *x, struct diags *d) {
    struct sizes s = check_sizes(m, x, CORNER_LOW);
    struct program *low = s.known ? instr_bind(m, x, s.ranged, d) : NULL;
    bool good = true;
    for (int i = 0; low && i < x->nranged; i++) {
        int64_t lo, hi, step;
        if (!instr_size_range(m, x, i, &lo, &hi, &step)) continue;
        if (step < 1) step = 1;
        if (hi >= 0 && s.ranged[i] + step > hi) continue;
        s.ranged[i] += step;
        struct program *more = instr_bind(m, x, s.ranged, d);
        s.ranged[i] -= step;
        for (int a = 0; more && a < low->naxes && a < more->naxes; a++) {
            int64_t by = more->axis[a].extent - low->axis[a].extent;
            if (by <= step) continue;
            good = false;
            warn_axis(x, low->axis[a].name, i, by / step, d);
        }
        if (more) program_free(more);
    }
    if (low) program_free(low);
    return good;
}

/* A move that computes may be an instruction too; one that copies is nothing else. */
static bool only_copies(const struct program *p) {
    const struct stmt *st = &p->stmt[0];
    return p->nstmts == 1 && st->nreads == 1 && st->nops == 1 && st->op[0].code == OP_READ &&
           p->buffer[st->read[0].buffer].type == p->buffer[st->dst.buffer].type;
}

static bool is_planned(const struct machine *m, int i, struct diags *d) {
    struct sizes s = check_sizes(m, &m->instr[i], CORNER_LOW);
    struct program *p = s.known ? instr_bind(m, &m->instr[i], s.ranged, d) : NULL;
    struct arena arena;
    struct move mv = {0};
    bool learnt = !p || !only_copies(p);
    if (p) program_free(p);
    if (learnt) return true;
    arena_init(&arena);
    learnt = move_learn(&arena, m, i, false, &mv, d);
    if (learnt) program_free(mv.needle->bound);
    arena_free(&arena);
    return learnt;
}

void check_axes(const struct machine *m, struct diags *d) {
    for (int i = 0; i < m->ninstrs; i++) {
        const struct instr *x = &m->instr[i];
        if (!axes_are_sizes(m, x, d) || !x->is_move || x->across >= 0 || x->queue < 0) continue;
        if (!is_planned(m, i, d))
            diag_warn(d, x->at.file, x->at.line, 0,
                      "nothing uses move '%s': expected, along each axis or each block of a fixed "
                      "axis, one distance between neighbours on either side, given or named",
                      x->id);
    }
}
