/* isamap show and new-machine: programs, machines and mappings as files to look at, and the
 * skeleton of a machine. */
#include "isamap_int.h"
#include "backends/bits.h"

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

enum { LEFT = 20, MIDDLE = 340, RIGHT = 640, ROW = 26, BOX = 220, PAGE = 900 };

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

static void svg_box(struct text *t, int x, int y, const char *class, const char *s) {
    text_printf(t, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"20\" rx=\"3\"/>\n",
                class, x, y, BOX);
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

static const char *access_text(struct arena *a, const struct program *p, const struct stmt *s,
                               const struct access *acc) {
    struct text t = {0};
    struct stmt_mark mark = {.access = acc, .op = -1};
    stmt_print(p, s, &t, &mark);
    const char *out = arena_printf(a, "%.*s: %s", (int)mark.n, t.at + mark.at,
                                   type_name(p->buffer[acc->buffer].type));
    text_free(&t);
    return out;
}

/* Axes of the statement on the left, of the instruction on the right; what stands on none is a loop
 * around it. */
static int draw_axes(struct text *t, struct arena *a, const struct program *p,
                     const struct program *n, const struct mapping *m, int top) {
    const struct stmt *s = &p->stmt[m->stmt];
    int left = top, right = top;
    for (int x = 0; x < m->ngroups; x++, right += ROW)
        svg_box(t, MIDDLE, right, "needle",
                arena_printf(a, "%s: %" PRId64, n->axis[x].name, n->axis[x].extent));
    for (int h = 0; h < p->naxes; h++) {
        if (!(s->axes >> h & 1)) continue;
        int on = -1, place = 0;
        for (int x = 0; x < m->ngroups; x++)
            for (int k = 0; k < m->group[x].n; k++)
                if (m->group[x].axis[k] == h) on = x, place = k;
        const char *how = on < 0 ? ", a loop around" : m->group[on].n > 1 ? ", fused" : "";
        svg_box(
            t, LEFT, left, on < 0 ? "outer" : "axis",
            on >= 0 && m->group[on].n > 1
                ? arena_printf(a, "%s: %" PRId64 "%s (%d)", p->axis[h].name, p->axis[h].extent, how,
                               place + 1)
                : arena_printf(a, "%s: %" PRId64 "%s", p->axis[h].name, p->axis[h].extent, how));
        if (on >= 0) svg_line(t, LEFT + BOX, left, MIDDLE, top + on * ROW, "axis");
        left += ROW;
    }
    return (left > right ? left : right) + 8;
}

/* What plays each operand, and where the instruction wants it. */
static int draw_operands(struct text *t, struct arena *a, const struct job *j,
                         const struct program *p, const struct program *n, const struct mapping *m,
                         int y) {
    const struct stmt *s = &p->stmt[m->stmt];
    const struct instr *x = &j->machine->instr[m->instr];
    for (int o = 0; o < x->noperands; o++, y += ROW) {
        const struct mapped_operand *mo = &m->operand[o];
        const struct access *acc = mo->role == OPERAND_IMM   ? NULL
                                   : mo->role == OPERAND_DST ? &s->dst
                                                             : &s->read[mo->read];
        enum type type = n->buffer[x->operand[o].kernel_buffer].type;
        struct text where = {0};
        for (int k = 0; k < x->operand[o].nmemories; k++)
            text_printf(&where, "%s%s", k ? ", " : "",
                        x->operand[o].memory[k] < 0
                            ? "imm"
                            : j->machine->memory[x->operand[o].memory[k]].id);
        svg_box(t, LEFT, y, "buffer",
                acc                   ? access_text(a, p, s, acc)
                : type_is_float(type) ? arena_printf(a, "%g", mo->imm.f)
                                      : arena_printf(a, "%" PRId64, mo->imm.i));
        svg_box(t, MIDDLE, y, "needle",
                arena_printf(a, "%s: %s", x->operand[o].buffer, type_name(type)));
        svg_box(t, RIGHT, y, "memory", where.at ? where.at : "");
        svg_line(t, LEFT + BOX, y, MIDDLE, y, acc && !mo->direct ? "packed" : "axis");
        svg_line(t, MIDDLE + BOX, y, RIGHT, y, "axis");
        if (acc && !mo->direct) svg_text(t, LEFT + BOX + 16, y + 4, "small", "packed first");
        text_free(&where);
    }
    return y + 8;
}

static int draw_mapping(struct text *t, isamap *im, struct job *j, const struct mapping *m, int y) {
    const struct program *p = j->cover->program;
    const struct instr *x = &j->machine->instr[m->instr];
    struct program *n = needle_program(j->machine, x, &im->diags);
    struct text line = {0};
    if (!n) return y;
    stmt_print(p, &p->stmt[m->stmt], &line, NULL);
    svg_text(t, LEFT, y + 16, "head", line.at);
    svg_text(
        t, LEFT, y + 34, "small",
        arena_printf(&j->arena, "statement %d on %s%s; executed points %.3g times the statement's",
                     m->stmt, x->id, m->init >= 0 ? ", with the fill before it" : "", m->waste));
    y = draw_axes(t, &j->arena, p, n, m, y + 44);
    y = draw_operands(t, &j->arena, j, p, n, m, y);
    text_free(&line);
    program_free(n);
    return y + 24;
}

static bool show_mappings(isamap *im, struct job *j, struct text *out) {
    struct text body = {0};
    int y = 50;
    if (!job_machine(im, j, USE_SIM) || !job_program(im, j) || !job_cover(im, j)) return false;
    const struct cover *c = j->cover;
    svg_text(&body, LEFT, 28, "title",
             arena_printf(&j->arena, "%s on %s: statement, instruction, memories", j->name,
                          j->machine->name));
    for (int i = 0; i < c->nitems; i++) {
        if (c->item[i].mapping >= 0) {
            y = draw_mapping(&body, im, j, &c->mapping[c->item[i].mapping], y);
        } else if (c->item[i].inside < 0) {
            struct text line = {0};
            stmt_print(c->program, &c->program->stmt[c->item[i].stmt], &line, NULL);
            svg_text(&body, LEFT, y + 16, "head", line.at);
            svg_text(&body, LEFT, y + 34, "small",
                     arena_printf(&j->arena, "statement %d on the fallback", c->item[i].stmt));
            text_free(&line);
            y += 58;
        }
    }
    text_printf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "font-family=\"sans-serif\" font-size=\"13\">\n"
        "<style>rect{stroke:#555}.axis{fill:#dbe9f6}.outer{fill:#eee}.needle{fill:#fbe5c8}.buffer{"
        "fill:#e2f0d9}"
        ".memory{fill:#eadcf2}path{fill:none;stroke:#555}path.axis{fill:none}path.packed{stroke-"
        "dasharray:4 3}"
        ".title{font-size:17px}.head{font-family:monospace}.small{font-size:11px;fill:#555}</"
        "style>\n"
        "<rect x=\"0\" y=\"0\" width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n%s</svg>\n",
        PAGE, y, body.at);
    text_free(&body);
    return true;
}

/* ---- show ---- */

int isamap_show(isamap *im, const char *path, const char *out) {
    call_begin(im);
    struct job j;
    job_init(&j, path);
    struct text t = {0};
    bool ok = false;
    bool program = has_suffix(path, ".isam") || has_suffix(path, ".onnx");
    if (has_suffix(path, ".bin") && (!out || has_suffix(out, ".txt") || has_suffix(out, ".sched"))) {
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
            path, out);
    }
    ok = ok && (!out || write_text(im, out, &t));
    text_free(&t);
    job_free(&j);
    return call_end(im, ok ? ISAMAP_DONE : ISAMAP_INPUT);
}

/* ---- new-machine ---- */

static bool is_id(const char *s) {
    if (!isalpha((unsigned char)*s) && *s != '_') return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("_.-", *s)) return false;
    return true;
}

int isamap_new_machine(isamap *im, const char *name, const char *out) {
    call_begin(im);
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
    if (ok)
        text_printf(&im->report.text, "wrote       %s; docs/porting.md goes on from here\n", to);
    text_free(&t);
    text_free(&path);
    return call_end(im, ok ? ISAMAP_DONE : ISAMAP_INPUT);
}
