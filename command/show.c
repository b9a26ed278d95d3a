/* isamap show and new-machine: programs, machines and mappings as files to look at, and the
 * skeleton of a machine. */
#include "command/isamap_int.h"
#include "backends/bits/bits.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static void machine_dot(const struct machine *m, struct text *t) {
    text_printf(t, "digraph \"%s\" {\n  rankdir=LR; node [shape=box];\n", m->name);
    for (int i = 0; i < m->nmemories; i++) {
        const struct memory *x = &m->memory[i];
        text_printf(t, "  m%d [label=\"%s", i, x->id);
        if (x->size > 0) text_printf(t, "\\n%" PRId64 " B", x->size);
        text_printf(t, "\"];\n");
        if (x->caches >= 0)
            text_printf(t, "  m%d -> m%d [style=dashed dir=both label=\"caches\"];\n", i,
                        x->caches);
    }
    for (int i = 0; i < m->ninstrs; i++) {
        const struct instr *x = &m->instr[i];
        if (x->is_move) {
            for (int f = 0; f < x->nfrom; f++)
                for (int o = 0; o < x->nto; o++)
                    text_printf(t, "  m%d -> m%d [label=\"%s\"];\n", x->from[f], x->to[o], x->id);
            continue;
        }
        text_printf(t, "  i%d [shape=ellipse label=\"%s\"];\n", i, x->id);
        for (int o = 0; o < x->noperands; o++)
            for (int k = 0; k < x->operand[o].nmemories; k++) {
                int mem = x->operand[o].memory[k];
                if (mem < 0) continue;
                if (x->operand[o].role != ROLE_OUT) text_printf(t, "  m%d -> i%d;\n", mem, i);
                if (x->operand[o].role != ROLE_IN) text_printf(t, "  i%d -> m%d;\n", i, mem);
            }
    }
    text_printf(t, "}\n");
}

static bool show_package(isamap *im, struct job *j, struct text *t) {
    struct bindings set;
    if (!pairs_bindings(im, &im->option.param, "--param", &j->arena, &set)) return false;
    j->machine = machine_load(j->path, &set, &im->diags);
    if (!j->machine) return false;
    if (bits_spoken(j->machine)) return bits_package(j->machine, t), true;
    diag_line(&im->diags, j->machine->file, 0, 0,
              "no instruction of '%s' has bit fields, expected emits as bits", j->machine->name);
    return false;
}

/* ---- mappings as a drawing ---- */

enum { LEFT = 20, ROW = 26, BOX = 220, GAP = 100, CHAR = 8 /* as wide as one gets */ };

struct sheet {
    struct text body;
    struct arena *arena;
    int wide, page; /* boxes of the first column; the whole */
};

static int middle_of(const struct sheet *w) {
    return LEFT + w->wide + GAP;
}

static int right_of(const struct sheet *w) {
    return middle_of(w) + BOX + GAP;
}

static void svg_escaped(struct text *t, const char *s) {
    for (; *s; s++)
        if (*s == '<' || *s == '>' || *s == '&')
            text_printf(t, "&#%d;", *s);
        else
            text_append(t, s, 1);
}

static void svg_text(struct text *t, int x, int y, const char *class, const char *s) {
    text_printf(t, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    svg_escaped(t, s);
    text_printf(t, "</text>\n");
}

static void svg_box(struct text *t, int x, int y, int wide, const char *class, const char *s) {
    text_printf(t, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"20\" rx=\"3\"/>\n",
                class, x, y, wide);
    svg_text(t, x + 6, y + 15, "t", s);
}

static void svg_line(struct text *t, int x0, int y0, int x1, int y1, const char *class) {
    text_printf(t, "<path class=\"%s\" d=\"M%d %d C%d %d %d %d %d %d\"/>\n", class, x0, y0 + 10,
                x0 + 50, y0 + 10, x1 - 50, y1 + 10, x1, y1 + 10);
}

/* The instruction's kernel with its sizes at their largest, 64 where unbounded. */
static struct program *needle_program(const struct machine *m, const struct instr *x,
                                      struct diags *d) {
    int64_t size[64], lo, hi, step;
    for (int i = 0; i < x->nranged && i < 64; i++)
        size[i] = !instr_size_range(m, x, i, &lo, &hi, &step) || hi < 0 ? 64 : hi;
    return instr_bind(m, x, size, d);
}

static const char *access_text(struct arena *a, const struct program *p, const struct access *acc) {
    struct text t = {0};
    access_print(p, acc, &t);
    const char *out = arena_printf(a, "%s: %s", t.at, type_name(p->buffer[acc->buffer].type));
    text_free(&t);
    return out;
}

static const char *operand_text(struct arena *a, const struct program *p, const struct mapping *m,
                                int o, enum type type) {
    const struct stmt *s = &p->stmt[m->stmt];
    const struct mapped_operand *mo = &m->operand[o];
    if (mo->role == OPERAND_DST) return access_text(a, p, &s->dst);
    if (mo->role == OPERAND_READ) return access_text(a, p, &s->read[mo->read]);
    return type_is_float(type) ? arena_printf(a, "%g", mo->imm.f)
                               : arena_printf(a, "%" PRId64, mo->imm.i);
}

static bool axis_ranged(const struct instr *x, const struct program *n, int axis) {
    for (int i = 0; i < x->nranged; i++)
        if (x->ranged[i] == n->axis[axis].param) return true;
    return false;
}

/* Axes of the statement on the left, of the instruction on the right; what stands on none is a loop
 * around it. */
static int draw_axes(struct sheet *w, const struct instr *x, const struct program *p,
                     const struct program *n, const struct mapping *m, int top) {
    const struct stmt *s = &p->stmt[m->stmt];
    struct text *t = &w->body;
    int left = top, right = top;
    for (int a = 0; a < m->ngroups; a++, right += ROW)
        svg_box(t, middle_of(w), right, BOX, "needle",
                arena_printf(w->arena, axis_ranged(x, n, a) ? "%s: up to %" PRId64 : "%s: %" PRId64,
                             n->axis[a].name, n->axis[a].extent));
    for (int h = 0; h < p->naxes; h++) {
        if (!(s->axes >> h & 1)) continue;
        int on = -1, place = 0;
        for (int a = 0; a < m->ngroups; a++)
            for (int k = 0; k < m->group[a].n; k++)
                if (m->group[a].axis[k] == h) on = a, place = k;
        bool fused = on >= 0 && m->group[on].n > 1;
        const char *how = on < 0  ? ", a loop around"
                          : fused ? arena_printf(w->arena, ", fused (%d)", place + 1)
                                  : "";
        svg_box(
            t, LEFT, left, w->wide, on < 0 ? "outer" : "axis",
            arena_printf(w->arena, "%s: %" PRId64 "%s", p->axis[h].name, p->axis[h].extent, how));
        if (on >= 0) svg_line(t, LEFT + w->wide, left, middle_of(w), top + on * ROW, "axis");
        left += ROW;
    }
    return (left > right ? left : right) + 8;
}

/* What plays each operand, and where the instruction wants it. */
static int draw_operands(struct sheet *w, const struct machine *machine, const struct program *p,
                         const struct program *n, const struct mapping *m, int y) {
    const struct instr *x = &machine->instr[m->instr];
    struct text *t = &w->body;
    for (int o = 0; o < x->noperands; o++, y += ROW) {
        const struct mapped_operand *mo = &m->operand[o];
        enum type type = n->buffer[x->operand[o].kernel_buffer].type;
        bool packed = mo->role != OPERAND_IMM && !mo->direct;
        struct text where = {0};
        for (int k = 0; k < x->operand[o].nmemories; k++)
            text_printf(&where, "%s%s", k ? ", " : "",
                        x->operand[o].memory[k] < 0 ? "imm"
                                                    : machine->memory[x->operand[o].memory[k]].id);
        svg_box(t, LEFT, y, w->wide, "buffer", operand_text(w->arena, p, m, o, type));
        svg_box(t, middle_of(w), y, BOX, "needle",
                arena_printf(w->arena, "%s: %s", x->operand[o].buffer, type_name(type)));
        svg_box(t, right_of(w), y, BOX, "memory", where.at ? where.at : "");
        svg_line(t, LEFT + w->wide, y, middle_of(w), y, packed ? "packed" : "axis");
        svg_line(t, middle_of(w) + BOX, y, right_of(w), y, "axis");
        if (packed) svg_text(t, LEFT + w->wide + 18, y + 6, "small", "packed first");
        text_free(&where);
    }
    return y + 8;
}

static int draw_statement(struct sheet *w, const struct program *p, int stmt, int y) {
    struct text line = {0};
    stmt_print(p, &p->stmt[stmt], &line, NULL);
    svg_text(&w->body, LEFT, y + 16, "head", line.at);
    if (LEFT + (int)line.n * CHAR + LEFT > w->page) w->page = LEFT + (int)line.n * CHAR + LEFT;
    text_free(&line);
    return y + 18;
}

static int draw_mapping(struct sheet *w, isamap *im, struct job *j, const struct mapping *m,
                        int y) {
    const struct program *p = j->cover->program;
    const struct instr *x = &j->machine->instr[m->instr];
    struct program *n = needle_program(j->machine, x, &im->diags), one;
    if (!n) return y;
    for (int q = 0; q < m->nalso; q++) y = draw_statement(w, p, m->also[q], y);
    y = draw_statement(w, p, m->stmt, y);
    struct text which = {0};
    for (int q = 0; q < m->nalso; q++) text_printf(&which, "%s%d", q ? ", " : "s ", m->also[q]);
    text_printf(&which, "%s%d", m->nalso ? ", " : " ", m->stmt);
    svg_text(
        &w->body, LEFT, y + 16, "small",
        arena_printf(w->arena, "statement%s on %s%s; executed points %.3g times the statement's",
                     which.at, x->id, m->init >= 0 ? ", with the fill before it" : "", m->waste));
    text_free(&which);
    if (mapping_program(w->arena, p, m, &one)) p = &one;
    y = draw_axes(w, x, p, n, m, y + 26);
    y = draw_operands(w, j->machine, p, n, m, y);
    program_free(n);
    return y + 24;
}

/* The first column takes the longest of what plays an operand. */
static void measure(struct sheet *w, const struct job *j) {
    const struct cover *c = j->cover;
    w->wide = BOX;
    for (int i = 0; i < c->nmappings; i++) {
        const struct mapping *m = &c->mapping[i];
        const struct program *p = c->program;
        struct program one;
        if (mapping_program(w->arena, p, m, &one)) p = &one;
        for (int o = 0; o < m->noperands; o++) {
            int wide = (int)strlen(operand_text(w->arena, p, m, o, TYPE_F64)) * CHAR + 12;
            if (wide > w->wide) w->wide = wide;
        }
    }
    w->page = right_of(w) + BOX + LEFT;
}

static bool show_mappings(isamap *im, struct job *j, struct text *out) {
    struct sheet w = {.arena = &j->arena};
    int y = 50;
    if (!job_machine(im, j, USE_SIM) || !job_program(im, j) || !job_cover(im, j)) return false;
    const struct cover *c = j->cover;
    measure(&w, j);
    svg_text(&w.body, LEFT, 28, "title",
             arena_printf(&j->arena, "%s on %s: statement, instruction, memories", j->name,
                          j->machine->name));
    for (int i = 0; i < c->nitems; i++) {
        if (c->item[i].mapping >= 0) {
            y = draw_mapping(&w, im, j, &c->mapping[c->item[i].mapping], y);
        } else if (c->item[i].inside < 0) {
            y = draw_statement(&w, c->program, c->item[i].stmt, y);
            svg_text(&w.body, LEFT, y + 16, "small",
                     arena_printf(&j->arena, "statement %d on the fallback", c->item[i].stmt));
            y += 40;
        }
    }
    text_printf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "font-family=\"sans-serif\" font-size=\"13\">\n"
        "<style>rect{stroke:#555}.page{fill:white;stroke:none}.axis{fill:#dbe9f6}.outer{fill:#eee}"
        ".needle{fill:#fbe5c8}.buffer{fill:#e2f0d9}"
        ".memory{fill:#eadcf2}path{fill:none;stroke:#555}path.axis{fill:none}path.packed{stroke-"
        "dasharray:4 3}"
        ".title{font-size:17px}.head{font-family:monospace}.small{font-size:11px;fill:#555}</"
        "style>\n"
        "<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n%s</svg>\n",
        w.page, y, w.body.at);
    text_free(&w.body);
    return true;
}

/* ---- show ---- */

static void report_out(struct report *r, const char *out) {
    report_open(r, NULL, '{');
    report_string(r, "out", out);
    report_close(r);
}

static int show_command(isamap *im, const char *path, const char *out) {
    struct job j;
    job_init(&j, path);
    struct text t = {0};
    bool ok = false;
    bool program = has_suffix(path, ".isam") || has_suffix(path, ".onnx");
    if (has_suffix(path, ".bin") &&
        (!out || has_suffix(out, ".txt") || has_suffix(out, ".sched"))) {
        ok = image_show(im, &j, out && has_suffix(out, ".sched"), &t);
        if (!out) text_append(&im->report.text, t.at ? t.at : "", t.n);
    } else if (program && has_suffix(out, ".isam")) {
        if ((ok = job_program(im, &j))) program_print(j.program, &t);
    } else if (!program && has_suffix(out, ".dot")) {
        j.machine = machine_load(path, NULL, &im->diags);
        if ((ok = j.machine != NULL)) machine_dot(j.machine, &t);
    } else if (!program && has_suffix(out, ".sv")) {
        ok = show_package(im, &j, &t);
    } else if (program && has_suffix(out, ".svg")) {
        ok = show_mappings(im, &j, &t);
    } else {
        diag_line(
            &im->diags, out, 0, 0,
            "cannot show '%s' as '%s'; expected a program as .isam, its mapping (-m MACHINE) as "
            ".svg, a machine as .dot or .sv, an image as .txt or .sched",
            path, out ? out : "text");
    }
    ok = ok && (!out || write_text(im, out, &t));
    if (ok && out) report_out(&im->report, out);
    text_free(&t);
    job_free(&j);
    return ok ? ISAMAP_DONE : ISAMAP_INPUT;
}

int isamap_show(isamap *im, const char *path, const char *out) {
    return call_run(im,
                    &(struct api_call){.name = "isamap_show", .run = show_command, .file = "file"},
                    path, out);
}

/* ---- new-machine ---- */

static bool is_id(const char *s) {
    if (!isalpha((unsigned char)*s) && *s != '_') return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("_.-", *s)) return false;
    return true;
}

static int new_machine_command(isamap *im, const char *name, const char *out) {
    struct text t = {0};
    struct text path = {0};
    text_printf(&path, "%s.xml", name);
    const char *to = out ? out : path.at, hole[] = "@NAME@";
    bool ok = false;
    if (!is_id(name)) {
        diag_line(&im->diags, name, 0, 0,
                  "'%s' is no name for a machine, expected a letter or _, then letters, digits, _, "
                  ". and -",
                  name);
    } else if (access(to, F_OK) == 0) {
        diag_line(&im->diags, to, 0, 0, "'%s' exists, expected a new file", to);
    } else {
        const char *at = machine_skeleton;
        for (const char *next; (next = strstr(at, hole)); at = next + sizeof hole - 1) {
            text_append(&t, at, (size_t)(next - at));
            text_append(&t, name, strlen(name));
        }
        text_append(&t, at, strlen(at));
        ok = write_text(im, to, &t);
    }
    if (ok) report_out(&im->report, to);
    if (ok)
        text_printf(&im->report.text, "wrote       %s; docs/porting.md goes on from here\n", to);
    text_free(&t);
    text_free(&path);
    return ok ? ISAMAP_DONE : ISAMAP_INPUT;
}

int isamap_new_machine(isamap *im, const char *name, const char *out) {
    return call_run(im,
                    &(struct api_call){
                        .name = "isamap_new_machine", .run = new_machine_command, .file = "name"},
                    name, out);
}
