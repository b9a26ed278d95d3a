/* A program has room for MAX_AXES axes. A graph may have more extents than that, as where each
 * layer has a number of channels of its own. Then an axis that few statements name is written with
 * two others, i of 12 and j of 16 for one of 192, or with one that is longer and ends at a
 * constraint. */
#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* Where some are to be left out, as many as leave room for those that copies of states take. */
enum { ROOM = 8 };

struct few {
    struct import *im;
    struct name_table axis; /* name -> struct import_axis */
    int lines;
    bool *in;    /* whether a line names an axis, for each axis and line */
    int *weight; /* of each line */
    struct spelling {
        int weight;        /* of the lines that name it */
        bool serves;       /* another one is written with it */
        const char *as;    /* NULL: by its name */
        const char *below; /* the constraint that goes with that */
    } * spelling;
};

static bool word_goes_on(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

/* The word or number that begins here, or one character. */
static size_t word_length(const char *at, size_t most) {
    size_t n = 0;
    while (n < most && word_goes_on(at[n])) n++;
    return n ? n : 1;
}

static struct import_axis *axis_named(const struct few *f, const char *word, size_t n) {
    char name[128];
    if (n >= sizeof name || !word_goes_on(*word)) return NULL;
    memcpy(name, word, n);
    name[n] = 0;
    return name_find(&f->axis, name);
}

static bool *named_in(const struct few *f, int axis, int line) {
    return &f->in[(size_t)axis * (size_t)f->lines + (size_t)line];
}

/* ---- which lines name which axes ---- */

/* Sums are most of what is computed: their axes are left as they are where others can go. */
enum { SUM = 64 };

static int lines_mark(struct few *f, const struct text *t, int line) {
    for (size_t k = 0, n; k < t->n; k += n) {
        n = word_length(t->at + k, t->n - k);
        const struct import_axis *a = axis_named(f, t->at + k, n);
        if (a) *named_in(f, (int)(a - f->im->axis), line) = true;
        if (t->at[k] == '+' && k + 1 < t->n && t->at[k + 1] == '=') f->weight[line] = SUM;
        line += t->at[k] == '\n';
    }
    return line;
}

/* Lines, and the recurrences among them, each of which takes an axis. */
static int lines_count(const struct text *t, int *recurrences) {
    int lines = 0;
    for (size_t k = 0, n; k < t->n; k += n) {
        n = word_length(t->at + k, t->n - k);
        *recurrences += n == 5 && memcmp(t->at + k, "recur", n) == 0;
        lines += t->at[k] == '\n';
    }
    return lines;
}

/* ---- what an axis is written with ---- */

static bool meet(const struct few *f, int a, int b) {
    for (int line = 0; line < f->lines; line++)
        if (*named_in(f, a, line) && *named_in(f, b, line)) return true;
    return false;
}

static bool may_serve(const struct few *f, int axis, int other) {
    return other != axis && !f->spelling[other].as && !meet(f, axis, other);
}

static void serve(struct few *f, int axis, int other) {
    f->spelling[other].serves = true;
    for (int line = 0; line < f->lines; line++)
        *named_in(f, other, line) |= *named_in(f, axis, line);
}

static bool as_product(struct few *f, int axis) {
    const struct import *im = f->im;
    int64_t whole = im->axis[axis].extent;
    for (int a = 0; a < im->naxes; a++) {
        int64_t outer = im->axis[a].extent;
        if (whole % outer || outer * outer > whole || !may_serve(f, axis, a)) continue;
        for (int b = 0; b < im->naxes; b++) {
            if (b == a || im->axis[b].extent != whole / outer || !may_serve(f, axis, b)) continue;
            f->spelling[axis].as = arena_printf(im->arena, "(%" PRId64 "*%s + %s)", whole / outer,
                                                im->axis[a].name, im->axis[b].name);
            serve(f, axis, a);
            serve(f, axis, b);
            return true;
        }
    }
    return false;
}

static bool as_longer(struct few *f, int axis) {
    const struct import *im = f->im;
    int64_t extent = im->axis[axis].extent;
    int best = -1;
    for (int a = 0; a < im->naxes; a++)
        if (im->axis[a].extent > extent && may_serve(f, axis, a) &&
            (best < 0 || im->axis[a].extent < im->axis[best].extent))
            best = a;
    if (best < 0) return false;
    f->spelling[axis].as = im->axis[best].name;
    f->spelling[axis].below = arena_printf(im->arena, "%s < %" PRId64, im->axis[best].name, extent);
    serve(f, axis, best);
    return true;
}

/* The axis whose lines weigh least, of those that nobody looked at. */
static int next_axis(const struct few *f, const bool *seen) {
    int best = -1;
    for (int a = 0; a < f->im->naxes; a++)
        if (!seen[a] && !f->spelling[a].serves &&
            (best < 0 || f->spelling[a].weight < f->spelling[best].weight))
            best = a;
    return best;
}

/* ---- the new text ---- */

static void constraints_write(const struct few *f, struct text *out, int line, bool constrained) {
    for (int a = 0; a < f->im->naxes; a++) {
        if (!f->spelling[a].below || !*named_in(f, a, line)) continue;
        text_printf(out, " %s %s", constrained ? "and" : "where", f->spelling[a].below);
        constrained = true;
    }
}

static int rewrite(struct few *f, struct text *t, int line, bool first) {
    struct text out = {0};
    bool constrained = false;
    int origin = 0;
    for (size_t k = 0, n; k < t->n; k += n) {
        for (; origin < f->im->norigins; origin++) { /* nodes begin where lines do */
            struct text_marks *from = &f->im->origin[origin].from;
            if ((first ? from->first : from->body) > k) break;
            *(first ? &from->first : &from->body) = out.n;
        }
        n = word_length(t->at + k, t->n - k);
        constrained |= n == 5 && memcmp(t->at + k, "where", n) == 0;
        const struct import_axis *a = axis_named(f, t->at + k, n);
        const char *as = a ? f->spelling[a - f->im->axis].as : NULL;
        if (t->at[k] == '\n') {
            constraints_write(f, &out, line++, constrained);
            constrained = false;
        }
        if (as)
            text_printf(&out, "%s", as);
        else
            text_append(&out, t->at + k, n);
    }
    for (; origin < f->im->norigins; origin++) {
        struct text_marks *from = &f->im->origin[origin].from;
        *(first ? &from->first : &from->body) = out.n;
    }
    text_free(t);
    *t = out;
    return line;
}

void axes_fit(struct import *im) {
    struct few f = {.im = im};
    int recurrences = 0, kept = 0;
    f.lines = lines_count(&im->first, &recurrences) + lines_count(&im->body, &recurrences);
    int over = im->naxes + recurrences - (MAX_AXES - ROOM);
    if (over <= (recurrences ? 0 : ROOM)) return;
    size_t naxes = (size_t)im->naxes;
    f.in = arena_array(im->arena, naxes * (size_t)f.lines, sizeof *f.in);
    f.weight = arena_array(im->arena, (size_t)f.lines, sizeof *f.weight);
    for (int line = 0; line < f.lines; line++) f.weight[line] = 1;
    f.spelling = arena_array(im->arena, naxes, sizeof *f.spelling);
    bool *seen = arena_array(im->arena, naxes, sizeof *seen);
    for (int a = 0; a < im->naxes; a++)
        name_put(im->arena, &f.axis, im->axis[a].name, &im->axis[a]);
    lines_mark(&f, &im->body, lines_mark(&f, &im->first, 0));
    for (int a = 0; a < im->naxes; a++)
        for (int line = 0; line < f.lines; line++)
            if (*named_in(&f, a, line)) f.spelling[a].weight += f.weight[line];
    for (int a; over > 0 && (a = next_axis(&f, seen)) >= 0; seen[a] = true)
        over -= as_product(&f, a) || as_longer(&f, a);
    rewrite(&f, &im->body, rewrite(&f, &im->first, 0, true), false);
    for (int a = 0; a < im->naxes; a++)
        if (!f.spelling[a].as) im->axis[kept++] = im->axis[a];
    im->naxes = kept;
}
#endif
