/* The context: options by name, messages, results by path. */
#include "isamap_int.h"
#include "ir/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- context and options ---- */

static void options_default(struct options *o) {
    *o = (struct options){
        .seed = 1, .threads = 1, .thread_count = {1}, .nthreads = 1, .runs = 7, .rtol = -1};
}

static bool context_init(isamap *im) {
    struct memory_scope scope;
    memory_scope_open(&scope);
    if (setjmp(scope.escape)) return false;
    arena_init(&im->arena);
    diags_init(&im->diags);
    report_init(&im->report);
    text_append(&im->messages, "", 0);
    options_default(&im->option);
    memory_scope_close(&scope);
    return true;
}

isamap *isamap_open(void) {
    isamap *im = calloc(1, sizeof *im);
    if (im && context_init(im)) return im;
    free(im);
    return NULL;
}

void isamap_close(isamap *im) {
    if (!im) return;
    arena_free(&im->arena);
    diags_free(&im->diags);
    report_free(&im->report);
    text_free(&im->messages);
    free(im);
}

void isamap_reset(isamap *im) {
    if (!im) return;
    arena_free(&im->arena);
    options_default(&im->option);
}

static bool add_pair(isamap *im, struct pairs *p, const char *value) {
    const char *eq = value ? strchr(value, '=') : NULL;
    if (!eq || eq == value) return false;
    if (p->n == p->cap) GROW(&im->arena, p->at, p->n, p->cap);
    p->at[p->n++] = (struct pair){arena_strndup(&im->arena, value, (size_t)(eq - value)),
                                  arena_strdup(&im->arena, eq + 1)};
    return true;
}

static bool set_number(const char *value, double lo, double hi, double *out) {
    char *end;
    if (!value || !*value) return false;
    *out = strtod(value, &end);
    return *end == 0 && *out >= lo && *out <= hi;
}

/* "4", or "1,2,4" for bench. */
static bool set_threads(struct options *o, const char *value) {
    int count[MAX_THREAD_COUNTS], n = 0;
    double number;
    char one[16];
    for (const char *p = value ? value : ""; n < MAX_THREAD_COUNTS; p++) {
        size_t k = strcspn(p, ",");
        if (k >= sizeof one) return false;
        memcpy(one, p, k);
        one[k] = 0;
        if (!set_number(one, 1, 1024, &number) || number != (int)number) return false;
        count[n++] = (int)number;
        p += k;
        if (!*p) break;
        if (n == MAX_THREAD_COUNTS) return false;
    }
    memcpy(o->thread_count, count, (size_t)n * sizeof *count);
    o->nthreads = n;
    o->threads = count[0];
    return true;
}

/* "20..200" */
static bool set_latencies(struct latencies *l, const char *value) {
    unsigned low, high;
    int n = 0;
    if (!value || sscanf(value, "%u..%u%n", &low, &high, &n) != 2 || value[n]) return false;
    *l = (struct latencies){.low = low, .high = high};
    return high >= low && high > 0;
}

static void clear_messages(isamap *im) {
    *im->last_message = 0;
    im->messages.n = 0;
    text_append(&im->messages, "", 0);
}

static int set_option(isamap *im, const char *name, const char *value) {
    struct options *o = &im->option;
    double number;
    struct {
        const char *name;
        const char **to;
    } strings[] = {
        {"machine", &o->machine},     {"kernel", &o->kernel},   {"output-dir", &o->output_dir},
        {"approach", &o->approach},   {"rewrite", &o->rewrite}, {"allow", &o->allow},
        {"decisions", &o->decisions}, {"record", &o->record},   {"trace", &o->trace},
        {"target", &o->target},       {"vs", &o->vs},           {"only", &o->only}};
    struct {
        const char *name;
        bool *to;
    } switches[] = {{"verify", &o->verify},    {"check", &o->check}, {"json", &o->json},
                    {"why", &o->why},          {"all", &o->all},     {"certify", &o->certify},
                    {"explain", &o->explain},  {"rtl", &o->rtl},     {"no-values", &o->no_values},
                    {"progress", &o->progress}, {"no-check", &o->no_check}};
    struct {
        const char *name;
        struct pairs *to;
    } lists[] = {{"define", &o->define},
                 {"input", &o->input},
                 {"param", &o->param},
                 {"size", &o->size},
                 {"set", &o->set}};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        if (strcmp(name, strings[i].name) == 0 && value)
            return *strings[i].to = arena_strdup(&im->arena, value), ISAMAP_DONE;
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (strcmp(name, switches[i].name) == 0) return *switches[i].to = true, ISAMAP_DONE;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (strcmp(name, lists[i].name) == 0 && add_pair(im, lists[i].to, value))
            return ISAMAP_DONE;
    if (strcmp(name, "seed") == 0 && set_number(value, 0, 0x1p53, &number))
        return o->seed = (uint64_t)number, ISAMAP_DONE;
    if (strcmp(name, "threads") == 0 && set_threads(o, value)) return ISAMAP_DONE;
    if (strcmp(name, "latencies") == 0 && set_latencies(&o->latencies, value)) return ISAMAP_DONE;
    if (strcmp(name, "runs") == 0 && set_number(value, 1, 1000, &number))
        return o->runs = (int)number, ISAMAP_DONE;
    if (strcmp(name, "contexts") == 0 && set_number(value, 1, 3, &number))
        return o->contexts = (int)number, ISAMAP_DONE;
    if (strcmp(name, "batch") == 0 && set_number(value, 1, 1 << 20, &number))
        return o->batch = (int64_t)number, ISAMAP_DONE;
    if (strcmp(name, "rtol") == 0 && set_number(value, 0, 1, &number))
        return o->rtol = number, ISAMAP_DONE;
    text_printf(&im->messages, "isamap: option '%s' is unknown or its value '%s' is not usable\n",
                name, value ? value : "");
    return ISAMAP_USAGE;
}

int isamap_option(isamap *im, const char *name, const char *value) {
    struct memory_scope scope;
    if (!im) return ISAMAP_USAGE;
    const struct arena arena = im->arena;
    const struct options option = im->option;
    memory_scope_open(&scope);
    if (setjmp(scope.escape)) {
        im->arena = arena;
        im->option = option;
        return call_out_of_memory(im, scope.wanted);
    }
    clear_messages(im);
    int status = set_option(im, name ? name : "", value);
    memory_scope_close(&scope);
    return status;
}

/* ---- calls ---- */

void call_begin(isamap *im) {
    im->defect = false;
    diags_free(&im->diags);
    diags_init(&im->diags);
    report_free(&im->report);
    report_init(&im->report);
    clear_messages(im);
}

int call_out_of_memory(isamap *im, size_t wanted) {
    diags_init(&im->diags);
    text_free(&im->report.text);
    text_free(&im->report.json);
    im->report = (struct report){0};
    text_free(&im->messages);
    if (wanted)
        snprintf(
            im->last_message, sizeof im->last_message,
            "error: not enough memory for %zu bytes, expected a smaller program or more memory\n",
            wanted);
    else
        snprintf(im->last_message, sizeof im->last_message,
                 "error: not enough memory, expected a smaller program or more memory\n");
    return ISAMAP_RESOURCES;
}

static bool call_accepts(isamap *im, const struct api_call *c, const char *file, const char *out) {
    const char *missing = c->file && !file ? c->file : c->out && !out ? c->out : NULL;
    if (missing) diag_line(&im->diags, c->name, 0, 0, "'%s' is NULL, expected a text", missing);
    return !missing;
}

int call_run(isamap *im, const struct api_call *c, const char *file, const char *out) {
    struct memory_scope scope;
    if (!im) return ISAMAP_USAGE;
    const struct arena arena = im->arena;
    const struct options option = im->option;
    memory_scope_open(&scope);
    if (setjmp(scope.escape)) {
        im->arena = arena;
        im->option = option;
        return call_out_of_memory(im, scope.wanted);
    }
    call_begin(im);
    int status = call_accepts(im, c, file, out) ? c->run(im, file, out) : ISAMAP_USAGE;
    status = call_end(im, status);
    memory_scope_close(&scope);
    return status;
}

void messages_take(isamap *im) {
    diags_text(&im->diags, &im->messages);
    diags_free(&im->diags);
    diags_init(&im->diags);
}

int call_end(isamap *im, int status) {
    bool errors = im->diags.errors > 0;
    messages_take(im);
    if (im->defect) return ISAMAP_DEFECT;
    return status == ISAMAP_DONE && errors ? ISAMAP_INPUT : status;
}

const char *isamap_result(const isamap *im) {
    const char *at = !im ? NULL : im->option.json ? im->report.json.at : im->report.text.at;
    return at ? at : "";
}

const char *isamap_messages(const isamap *im) {
    if (im && *im->last_message) return im->last_message;
    return im && im->messages.at ? im->messages.at : "";
}

double isamap_number(const isamap *im, const char *path) {
    return im && path ? report_get(&im->report, path) : NAN;
}

const char *isamap_key(const isamap *im, const char *path, int i) {
    return im && path && i >= 0 ? report_key(&im->report, path, i) : NULL;
}
