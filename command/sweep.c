/* `isamap sweep`: cycles over parameters of the machine, as CSV and as a picture with the points
 * that no other beats. */
#include "command/points.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct point {
    bool ok, front;
    double cycles, utilisation, read, written, seconds;
    const char *error;
};

struct sweep {
    isamap *im;
    const char *path;
    struct arena arena;
    struct points points;
    struct point *point;
};

static bool parse_sets(struct sweep *w) {
    if (!w->im->option.set.n) {
        diag_line(&w->im->diags, "--set", 0, 0,
                  "no parameter to sweep, expected --set NAME=LOW..HIGH or NAME=VALUE,VALUE");
        return false;
    }
    if (!points_parse(w->im, &w->arena, &w->points)) return false;
    w->point = arena_array(&w->arena, (size_t)w->points.n, sizeof *w->point);
    return true;
}

static int64_t value_of(const struct sweep *w, const struct point *p, int k) {
    return points_value(&w->points, (int)(p - w->point), k);
}

/* ---- one point ---- */

static bool simulate_point(struct sweep *w, struct point *p) {
    isamap *im = w->im;
    struct job j;
    struct sim_result x = {0};
    job_init(&j, w->path);
    bool ok = job_machine(im, &j, USE_SIM) && job_program(im, &j) && job_compile(im, &j) &&
              job_sizes(im, &j);
    if (ok) {
        struct sim_options options = {.no_values = true, .size = j.size};
        doing(im, "simulating");
        ok = sim_run(j.schedule, NULL, &options, &x, &im->diags);
        p->cycles = x.cycles;
        p->utilisation = x.utilisation;
        p->read = x.home_read_bytes;
        p->written = x.home_write_bytes;
        p->seconds = j.compile_seconds;
        sim_result_free(&x);
    }
    job_free(&j);
    return ok;
}

/* A value that the machine or the program cannot have is a point without cycles. */
static void run_point(struct sweep *w, struct point *p) {
    isamap *im = w->im;
    struct pairs kept = im->option.param;
    im->option.param = points_params(&w->points, (int)(p - w->point), &kept, &w->arena);
    p->ok = simulate_point(w, p);
    im->option.param = kept;
    for (int i = 0; i < im->diags.n && !p->error && !p->ok; i++)
        if (!im->diags.at[i].warning) p->error = arena_strdup(&w->arena, im->diags.at[i].text);
    diags_free(&im->diags);
    diags_init(&im->diags);
}

/* No point with parameters as small or smaller has as few cycles or fewer, and one of them less. */
static bool beaten(const struct sweep *w, const struct point *p) {
    for (int i = 0; i < w->points.n; i++) {
        const struct point *q = &w->point[i];
        bool as_good = q != p && q->ok && q->cycles <= p->cycles, better = q->cycles < p->cycles;
        for (int k = 0; k < w->points.nset && as_good; k++) {
            as_good = value_of(w, q, k) <= value_of(w, p, k);
            better = better || value_of(w, q, k) < value_of(w, p, k);
        }
        if (as_good && better) return true;
    }
    return false;
}

/* ---- results ---- */

static void csv_text(const struct sweep *w, struct text *t) {
    for (int k = 0; k < w->points.nset; k++) text_printf(t, "%s,", w->points.set[k].name);
    text_printf(t, "cycles,utilisation,dram_read_bytes,dram_write_bytes,pareto,error\n");
    for (int i = 0; i < w->points.n; i++) {
        const struct point *p = &w->point[i];
        for (int k = 0; k < w->points.nset; k++) text_printf(t, "%" PRId64 ",", value_of(w, p, k));
        if (p->ok) {
            text_printf(t, "%.0f,%.6g,%.0f,%.0f,%d,\n", p->cycles, p->utilisation, p->read,
                        p->written, p->front);
            continue;
        }
        text_printf(t, ",,,,0,\"");
        for (const char *c = p->error ? p->error : ""; *c; c++)
            text_printf(t, "%s%c", *c == '"' ? "\"" : "", *c);
        text_printf(t, "\"\n");
    }
}

static void escaped(struct text *t, const char *s) {
    for (; *s; s++) {
        if (*s == '<' || *s == '&')
            text_printf(t, "%s", *s == '<' ? "&lt;" : "&amp;");
        else
            text_append(t, s, 1);
    }
}

struct plot {
    double x0, x1, y1; /* of the values: least and most; the most cycles, at least 1 */
    bool logarithmic;
};

static double plot_x(const struct plot *f, double v) {
    double a = f->logarithmic ? log2(f->x0) : f->x0, b = f->logarithmic ? log2(f->x1) : f->x1,
           x = f->logarithmic ? log2(v) : v;
    return b > a ? 80 + 520 * (x - a) / (b - a) : 340;
}

static double plot_y(const struct plot *f, double v) {
    return 340 - 290 * v / f->y1;
}

static struct plot plot_of(const struct sweep *w) {
    const struct swept *s = &w->points.set[0];
    struct plot f = {INFINITY, -INFINITY, 1, false};
    for (int k = 0; k < s->n; k++) {
        f.x0 = fmin(f.x0, (double)s->value[k]);
        f.x1 = fmax(f.x1, (double)s->value[k]);
    }
    f.logarithmic = f.x0 > 0 && f.x1 >= 16 * f.x0;
    for (int i = 0; i < w->points.n; i++)
        if (w->point[i].ok) f.y1 = fmax(f.y1, w->point[i].cycles);
    return f;
}

static void axes(const struct sweep *w, const struct plot *f, struct text *t) {
    const struct swept *s = &w->points.set[0];
    text_printf(t, "<path d=\"M80 40V340H610\" fill=\"none\" stroke=\"#333\"/>\n");
    for (int k = 0; k <= 4; k++) {
        double v = f->y1 * k / 4;
        text_printf(t, "<text x=\"74\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n",
                    plot_y(f, v) + 4, v);
        text_printf(t, "<path d=\"M80 %.1fH610\" stroke=\"#ddd\"/>\n", plot_y(f, v));
    }
    for (int k = 0; k < s->n; k += 1 + s->n / 9)
        text_printf(t, "<text x=\"%.1f\" y=\"358\" text-anchor=\"middle\">%" PRId64 "</text>\n",
                    plot_x(f, (double)s->value[k]), s->value[k]);
    text_printf(t, "<text x=\"345\" y=\"380\" text-anchor=\"middle\">");
    escaped(t, s->name);
    text_printf(t, "</text>\n<text x=\"80\" y=\"28\">cycles of ");
    escaped(t, w->path);
    text_printf(t, "; filled: no smaller parameters take fewer</text>\n");
}

/* One line for each choice of the other parameters. */
static void svg_text(const struct sweep *w, struct text *t) {
    static const char *const colour[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                         "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"};
    struct plot f = plot_of(w);
    int lines = w->points.n / w->points.set[0].n;
    text_printf(t, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 780 400\" "
                   "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"780\" "
                   "height=\"400\" fill=\"white\"/>\n");
    axes(w, &f, t);
    for (int l = 0; l < lines; l++) {
        const char *c = colour[l % 8];
        text_printf(t, "<polyline fill=\"none\" stroke=\"%s\" points=\"", c);
        for (int k = 0; k < w->points.set[0].n; k++) {
            const struct point *p = &w->point[k * lines + l];
            if (p->ok)
                text_printf(t, "%.1f,%.1f ", plot_x(&f, (double)value_of(w, p, 0)),
                            plot_y(&f, p->cycles));
        }
        text_printf(t, "\"/>\n");
        for (int k = 0; k < w->points.set[0].n; k++) {
            const struct point *p = &w->point[k * lines + l];
            if (p->ok)
                text_printf(t,
                            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" stroke=\"%s\" fill=\"%s\"/>\n",
                            plot_x(&f, (double)value_of(w, p, 0)), plot_y(&f, p->cycles), c,
                            p->front ? c : "white");
        }
        if (lines == 1 || l >= 18) continue;
        text_printf(t, "<text x=\"622\" y=\"%d\" fill=\"%s\">", 50 + 16 * l, c);
        for (int k = 1; k < w->points.nset; k++) {
            escaped(t, k > 1 ? " " : "");
            escaped(t, w->points.set[k].name);
            text_printf(t, "=%" PRId64, value_of(w, &w->point[l], k));
        }
        text_printf(t, "</text>\n");
    }
    text_printf(t, "</svg>\n");
}

static void report_points(const struct sweep *w) {
    struct report *r = &w->im->report;
    int n = 0;
    report_open(r, NULL, '{');
    report_string(r, "program", w->path);
    report_open(r, "points", '[');
    for (int i = 0; i < w->points.n; i++) {
        const struct point *p = &w->point[i];
        report_open(r, NULL, '{');
        for (int k = 0; k < w->points.nset; k++) {
            report_integer(r, w->points.set[k].name, value_of(w, p, k));
            text_printf(&r->text, "%s %-10" PRId64, w->points.set[k].name, value_of(w, p, k));
        }
        if (p->ok) {
            report_number(r, "cycles", p->cycles);
            report_number(r, "utilisation", p->utilisation);
            report_bool(r, "pareto", p->front);
            text_printf(&r->text, " %12.0f cycles, utilisation %.3f%s\n", p->cycles, p->utilisation,
                        p->front ? " *" : "");
        } else {
            report_string(r, "error", p->error ? p->error : "");
            text_printf(&r->text, " %s\n", p->error ? p->error : "no result");
        }
        n += p->ok;
        report_close(r);
    }
    report_close(r);
    report_integer(r, "simulated", n);
    report_close(r);
}

static bool write_results(struct sweep *w, const char *out) {
    struct text csv = {0}, svg = {0};
    size_t n = out ? strlen(out) : 0;
    if (!out) return true;
    if (!has_suffix(out, ".csv")) {
        diag_line(&w->im->diags, out, 0, 0,
                  "a sweep is written as '.csv', and as '.svg' beside it");
        return false;
    }
    csv_text(w, &csv);
    svg_text(w, &svg);
    bool ok = write_text(w->im, out, &csv) &&
              write_text(w->im, arena_printf(&w->arena, "%.*s.svg", (int)n - 4, out), &svg);
    text_free(&csv);
    text_free(&svg);
    return ok;
}

static int sweep_command(isamap *im, const char *path, const char *out) {
    struct sweep w = {.im = im, .path = path};
    arena_init(&w.arena);
    bool ok = parse_sets(&w);
    int done = 0;
    for (int i = 0; i < w.points.n && ok; i++) {
        doing_item(im, i + 1, w.points.n, "points");
        run_point(&w, &w.point[i]);
        done += w.point[i].ok;
    }
    for (int i = 0; i < w.points.n && ok; i++)
        w.point[i].front = w.point[i].ok && !beaten(&w, &w.point[i]);
    if (ok && !done) {
        diag_line(&im->diags, path, 0, 0, "no point can be simulated: %s",
                  w.point[0].error ? w.point[0].error : "no reason");
        ok = false;
    }
    if (ok) report_points(&w);
    ok = ok && write_results(&w, out);
    arena_free(&w.arena);
    return ok ? ISAMAP_DONE : ISAMAP_INPUT;
}

int isamap_sweep(isamap *im, const char *path, const char *out) {
    return call_run(
        im, &(struct api_call){.name = "isamap_sweep", .run = sweep_command, .file = "program"},
        path, out);
}
