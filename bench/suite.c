/* Suites: lines of cells; `# kernel: FILE.isam[:NAME]` says what the columns bind. */
#include "bench/suite.h"
#include "ir/nearest.h"
#include "ir/program.h"
#include "ir/memory.h"

#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_COLUMNS = 64, MAX_FILES = 64 };
static const size_t SUITE_BYTES = 1u << 20, KERNEL_BYTES = 1u << 20;

const char *const kernel_folders[] = {"bench", NULL};

/* A cell: the text between two commas without the blanks around it. */
struct cell {
    const char *text;
    size_t at; /* offset in the suite */
};

enum column_role { COLUMN_NAME, COLUMN_KERNEL, COLUMN_NOTE, COLUMN_PARAM };

struct kernel_file {
    const char *path;
    struct kernel **kernel;
    int n;
};

struct reader {
    struct suite *suite;
    struct arena *arena;
    const struct suite_options *options;
    struct source source;
    struct diags *diags;
    struct cell column[MAX_COLUMNS];
    enum column_role role[MAX_COLUMNS];
    int ncolumns;
    struct cell kernel; /* what the suite's own line says; text NULL: nothing */
    struct kernel_file file[MAX_FILES];
    int nfiles, cap;
    struct kernel_file *guessed;
    bool stop; /* an option is wrong: every row would say so */
};

#define FAIL(r, offset, ...) (diag_at((r)->diags, &(r)->source, offset, __VA_ARGS__), false)

/* ---- lines and cells ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static struct cell make_cell(struct reader *r, size_t from, size_t to) {
    const char *t = r->source.text;
    while (from < to && is_blank(t[from])) from++;
    while (to > from && is_blank(t[to - 1])) to--;
    return (struct cell){arena_strndup(r->arena, t + from, to - from), from};
}

static int split(struct reader *r, size_t from, size_t to, struct cell *cell) {
    int n = 0;
    for (size_t at = from; at <= to; at++) {
        if (at < to && r->source.text[at] != ',') continue;
        if (n == MAX_COLUMNS) {
            diag_at(r->diags, &r->source, from, "more than %d columns", MAX_COLUMNS);
            return -1;
        }
        cell[n++] = make_cell(r, from, at);
        from = at + 1;
    }
    return n;
}

static bool read_header(struct reader *r, size_t from, size_t to) {
    r->ncolumns = split(r, from, to, r->column);
    bool named = false;
    for (int c = 0; c < r->ncolumns; c++) {
        const char *name = r->column[c].text;
        if (!*name) return FAIL(r, r->column[c].at, "column %d has no name", c + 1);
        for (int k = 0; k < c; k++)
            if (strcmp(r->column[k].text, name) == 0)
                return FAIL(r, r->column[c].at, "column '%s' is there twice", name);
        r->role[c] = strcmp(name, "name") == 0     ? COLUMN_NAME
                     : strcmp(name, "kernel") == 0 ? COLUMN_KERNEL
                     : strcmp(name, "source") == 0 ? COLUMN_NOTE
                                                   : COLUMN_PARAM;
        named = named || r->role[c] == COLUMN_NAME;
    }
    if (r->ncolumns > 0 && !named)
        return FAIL(r, from, "no column 'name'; expected a header such as name,M,N,K");
    return r->ncolumns > 0;
}

/* "# kernel: conv2d.isam" */
static void read_comment(struct reader *r, size_t from, size_t to) {
    struct cell c = make_cell(r, from + 1, to);
    if (strncmp(c.text, "kernel:", 7) == 0) r->kernel = make_cell(r, c.at + 7, to);
}

/* ---- kernels ---- */

/* The file in the suite's folder, then in the given folders, then as it stands. NULL: nowhere. */
static const char *find_file(struct reader *r, const char *name) {
    const char *slash = strrchr(r->suite->path, '/');
    const char *beside = arena_printf(
        r->arena, "%.*s%s", slash ? (int)(slash - r->suite->path + 1) : 0, r->suite->path, name);
    if (access(beside, R_OK) == 0) return beside;
    for (int i = 0; r->options->folder && r->options->folder[i]; i++) {
        const char *path = arena_printf(r->arena, "%s/%s", r->options->folder[i], name);
        if (access(path, R_OK) == 0) return path;
    }
    return access(name, R_OK) == 0 ? name : NULL;
}

static struct kernel_file *load_file(struct reader *r, const char *path) {
    for (int i = 0; i < r->nfiles; i++)
        if (strcmp(r->file[i].path, path) == 0) return &r->file[i];
    if (r->nfiles == MAX_FILES) {
        diag_line(r->diags, r->suite->path, 0, 0, "more than %d files of kernels", MAX_FILES);
        return NULL;
    }
    struct kernel_file *f = &r->file[r->nfiles];
    struct source *source = arena_alloc(r->arena, sizeof *source);
    *source = (struct source){.file = path, .line0 = 1, .col0 = 1};
    source->text = file_read(r->arena, path, KERNEL_BYTES, &source->length, r->diags);
    if (!source->text) return NULL;
    *f = (struct kernel_file){.path = path};
    f->n = kernel_parse(r->arena, source, &f->kernel, r->diags);
    if (f->n < 0) return NULL;
    r->nfiles++;
    return f;
}

static bool has_all_columns(const struct reader *r, const struct kernel *k) {
    for (int c = 0; c < r->ncolumns; c++)
        if (r->role[c] == COLUMN_PARAM && kernel_param_index(k, r->column[c].text) < 0)
            return false;
    return true;
}

static struct kernel_file *guess_in(struct reader *r, const char *folder) {
    glob_t found;
    struct kernel_file *f = NULL;
    if (glob(arena_printf(r->arena, "%s/*.isam", folder), 0, NULL, &found) != 0) return NULL;
    for (size_t i = 0; i < found.gl_pathc && !f && r->nfiles < MAX_FILES; i++) {
        struct kernel_file *one = load_file(r, arena_strdup(r->arena, found.gl_pathv[i]));
        for (int k = 0; one && k < one->n && !f; k++)
            if (has_all_columns(r, one->kernel[k])) f = one;
    }
    globfree(&found);
    return f;
}

/* Nobody said which: in the folders, files by name, the first kernel that has all columns. */
static struct kernel_file *guess_file(struct reader *r) {
    struct kernel_file *f = NULL;
    for (int i = 0; r->options->folder && r->options->folder[i] && !f; i++)
        f = guess_in(r, r->options->folder[i]);
    if (!f)
        diag_at(r->diags, &r->source, r->column[0].at,
                "no kernel has these columns as parameters; expected a line '# kernel: FILE.isam' "
                "in the suite, a column 'kernel', or --kernel FILE.isam");
    return f;
}

/* What the option, the row or the suite says, in this order. */
static struct kernel_file *choose_file(struct reader *r, struct cell row_spec, const char **name) {
    const char *spec = r->options->kernel, *dot = NULL;
    size_t at = row_spec.at;
    bool in_suite = false;
    *name = NULL;
    if (spec && !strstr(spec, ".isam")) *name = spec, spec = NULL;
    if (!spec && row_spec.text && *row_spec.text) spec = row_spec.text, in_suite = true;
    if (!spec && r->kernel.text) spec = r->kernel.text, at = r->kernel.at, in_suite = true;
    if (!spec && !r->guessed) r->guessed = guess_file(r);
    if (!spec) return r->guessed;
    dot = strstr(spec, ".isam");
    const char *file = dot ? arena_strndup(r->arena, spec, (size_t)(dot + 5 - spec)) : spec;
    if (dot && dot[5] == ':' && !*name) *name = dot + 6;
    const char *path = dot ? find_file(r, file) : NULL;
    if (path) return load_file(r, path);
    if (in_suite)
        diag_at(r->diags, &r->source, at,
                "no kernel file '%s'; expected FILE.isam or FILE.isam:NAME", file);
    else
        diag_line(r->diags, "--kernel", 0, 0, "no file '%s'", file);
    r->stop = !in_suite;
    return NULL;
}

int kernel_batch(const struct kernel *k) {
    int batch = -1;
    bool constant_too = false;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < k->nitems; i++) {
            const struct kernel_buffer *b =
                k->item[i].kind == KITEM_BUFFER ? k->item[i].buffer : NULL;
            if (!b || b->ndims == 0 || b->role == ROLE_TEMP || b->role == ROLE_STATE) continue;
            const struct expr *first = b->extent[0];
            int p = first->kind == EXPR_NAME ? kernel_param_index(k, first->name) : -1;
            if (pass == 0 && b->role != ROLE_CONST) {
                if (p < 0 || (batch >= 0 && p != batch)) return -1;
                batch = p;
            }
            if (pass == 1 && b->role == ROLE_CONST && p == batch) constant_too = true;
        }
    }
    return constant_too ? -1 : batch;
}

/* ---- rows ---- */

static bool read_integer(struct reader *r, int column, struct cell c, int64_t *out) {
    char *end;
    errno = 0;
    long long v = strtoll(c.text, &end, 10);
    *out = v;
    if (!errno && end != c.text && !*end) return true;
    return FAIL(r, c.at, "'%s' is not an integer; column '%s' is a size", c.text,
                r->column[column].text);
}

static bool some_kernel_has(const struct kernel_file *f, const char *only, const char *param) {
    for (int k = 0; k < f->n; k++)
        if ((!only || strcmp(f->kernel[k]->name, only) == 0) &&
            kernel_param_index(f->kernel[k], param) >= 0)
            return true;
    return false;
}

static void set_value(struct binding *given, int *n, const char *name, int64_t value) {
    for (int i = 0; i < *n; i++)
        if (strcmp(given[i].name, name) == 0) {
            given[i].value = value;
            return;
        }
    given[(*n)++] = (struct binding){name, value};
}

/* Does the kernel take these values? What it says when not goes to `why`. */
static bool kernel_takes(struct reader *r, const struct kernel *k, struct workload *w,
                         struct text *why) {
    const struct suite_options *o = r->options;
    int extra = (o->set ? o->set->n : 0) + 1, n = w->given.n;
    struct binding *given = arena_array(r->arena, (size_t)(n + extra), sizeof *given);
    for (int i = 0; i < n; i++) given[i] = w->given.at[i];
    if (o->batch) {
        int b = kernel_batch(k);
        if (b < 0)
            return text_printf(why,
                               "%s%s: no batch size for --batch, a parameter that is the first "
                               "dimension of all inputs and outputs",
                               why->n ? "; " : "", k->name),
                   false;
        set_value(given, &n, k->param[b].name, o->batch);
    }
    for (int i = 0; o->set && i < o->set->n; i++)
        set_value(given, &n, o->set->at[i].name, o->set->at[i].value);
    struct bindings all = {.at = given, .n = n};
    struct diags said;
    diags_init(&said);
    struct program *p = program_bind(k, &all, NULL, &said);
    if (p) w->kernel = k, w->given = all;
    if (!p && said.n) text_printf(why, "%s%s: %s", why->n ? "; " : "", k->name, said.at[0].text);
    if (p) program_free(p);
    diags_free(&said);
    return p != NULL;
}

static bool pick_kernel(struct reader *r, const struct kernel_file *f, const char *name, size_t at,
                        struct workload *w) {
    struct text why = {0};
    bool any = false, ok = false;
    text_append(&why, "", 0);
    for (int k = 0; k < f->n && !ok; k++) {
        if (name && strcmp(f->kernel[k]->name, name) != 0) continue;
        any = true;
        ok = kernel_takes(r, f->kernel[k], w, &why);
    }
    struct names known = {0};
    for (int k = 0; k < f->n; k++) names_add(r->arena, &known, f->kernel[k]->name);
    if (!any)
        diag_at(r->diags, &r->source, at, "no kernel '%s' in '%s', expected %s", name ? name : "",
                f->path, names_listed(r->arena, name ? name : "", &known));
    else if (!ok)
        diag_at(r->diags, &r->source, at, "'%s' fits no kernel of '%s': %s", w->name, f->path,
                why.at);
    r->stop = !ok && (r->options->batch || (r->options->set && r->options->set->n));
    text_free(&why);
    w->file = f->path;
    return ok;
}

static bool matches(const char *only, const char *name) {
    if (!only) return true;
    char pattern[256];
    for (const char *p = only; *p;) {
        size_t n = strcspn(p, ",");
        if (n < sizeof pattern) {
            memcpy(pattern, p, n);
            pattern[n] = 0;
            if (fnmatch(pattern, name, 0) == 0) return true;
        }
        p += n + (p[n] == ',');
    }
    return false;
}

static bool check_columns(struct reader *r, const struct kernel_file *f, const char *kernel,
                          int column) {
    if (some_kernel_has(f, kernel, r->column[column].text)) return true;
    return FAIL(r, r->column[column].at, "no kernel of '%s' has a parameter '%s'", f->path,
                r->column[column].text);
}

static bool read_row(struct reader *r, size_t from, size_t to, int line) {
    struct cell cell[MAX_COLUMNS], spec = {0};
    struct workload w = {.line = line};
    int n = split(r, from, to, cell);
    if (n < 0) return false;
    if (n != r->ncolumns)
        return FAIL(r, from, "%d cells, but the header has %d columns", n, r->ncolumns);
    struct binding *given = arena_array(r->arena, (size_t)n, sizeof *given);
    size_t name_at = from;
    for (int c = 0; c < n; c++) {
        if (r->role[c] == COLUMN_NAME) w.name = cell[c].text, name_at = cell[c].at;
        if (r->role[c] == COLUMN_KERNEL) spec = cell[c];
    }
    if (!*w.name) return FAIL(r, name_at, "the workload has no name");
    for (int i = 0; i < r->suite->n; i++)
        if (strcmp(r->suite->at[i].name, w.name) == 0)
            return FAIL(r, name_at, "workload '%s' is there twice, first in line %d", w.name,
                        r->suite->at[i].line);
    const char *kernel;
    struct kernel_file *f = choose_file(r, spec, &kernel);
    if (!f) return false;
    for (int c = 0; c < n; c++) {
        if (r->role[c] != COLUMN_PARAM || !*cell[c].text) continue;
        int64_t value;
        if (!check_columns(r, f, kernel, c) || !read_integer(r, c, cell[c], &value)) return false;
        given[w.given.n++] = (struct binding){r->column[c].text, value};
    }
    w.given.at = given;
    if (!pick_kernel(r, f, kernel, name_at, &w)) return false;
    if (r->suite->n == r->cap) GROW(r->arena, r->suite->at, r->suite->n, r->cap);
    r->suite->at[r->suite->n++] = w;
    return true;
}

static bool read_lines(struct reader *r) {
    const char *t = r->source.text;
    int line = 0, wrong = 0;
    for (size_t at = 0, end; at < r->source.length; at = end + 1) {
        const char *nl = memchr(t + at, '\n', r->source.length - at);
        end = nl ? (size_t)(nl - t) : r->source.length;
        line++;
        size_t first = at;
        while (first < end && is_blank(t[first])) first++;
        if (first == end) continue;
        if (t[first] == '#')
            read_comment(r, first, end);
        else if (r->ncolumns == 0) {
            if (!read_header(r, first, end)) return false;
        } else if (!read_row(r, first, end, line) && (++wrong == 10 || r->stop))
            return false;
    }
    if (r->ncolumns == 0)
        return FAIL(r, 0, "no header; expected a line of column names such as name,M,N,K");
    if (r->suite->n == 0 && !wrong) return FAIL(r, r->column[0].at, "no rows after the header");
    return wrong == 0;
}

static bool keep_only(struct suite *s, const char *only, struct diags *diags) {
    int kept = 0;
    struct names known = {0};
    for (int i = 0; i < s->n; i++) {
        names_add(&diags->arena, &known, s->at[i].name);
        if (matches(only, s->at[i].name)) s->at[kept++] = s->at[i];
    }
    s->n = kept;
    if (!kept)
        diag_line(diags, s->path, 0, 0, "no workload is called '%s', expected %s", only,
                  names_listed(&diags->arena, only, &known));
    return kept > 0;
}

struct suite *suite_parse(const char *path, const char *text, size_t length,
                          const struct suite_options *options, struct diags *diags) {
    struct suite *s = memory_array(1, sizeof *s);
    arena_init(&s->arena);
    s->path = arena_strdup(&s->arena, path);
    struct reader *r = arena_alloc(&s->arena, sizeof *r);
    *r = (struct reader){.suite = s, .arena = &s->arena, .options = options, .diags = diags};
    r->source =
        (struct source){.file = s->path, .text = text, .length = length, .line0 = 1, .col0 = 1};
    if (!memchr(text, 0, length) ? read_lines(r) && keep_only(s, options->only, diags)
                                 : FAIL(r, strlen(text), "a byte 0 in the text"))
        return s;
    suite_free(s);
    return NULL;
}

struct suite *suite_load(const char *path, const struct suite_options *options,
                         struct diags *diags) {
    struct arena scratch;
    size_t length;
    arena_init(&scratch);
    char *text = file_read(&scratch, path, SUITE_BYTES, &length, diags);
    struct suite *s = text ? suite_parse(path, text, length, options, diags) : NULL;
    arena_free(&scratch);
    return s;
}

void suite_free(struct suite *s) {
    if (!s) return;
    arena_free(&s->arena);
    free(s);
}
