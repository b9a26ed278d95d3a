/* The context: options by name, messages, results by path. */
#include "command/isamap_int.h"
#include "ir/memory.h"
#include "command/options.h"

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

static void clear_messages(isamap *im) {
    *im->last_message = 0;
    im->messages.n = 0;
    text_append(&im->messages, "", 0);
}

static int set_option(isamap *im, const char *name, const char *value) {
    const struct option *o = option_find(name, COMMANDS);
    struct text t = {0};
    bool good = false;
    if (o && o->at == NOT_STORED)
        text_printf(&t, "--%s is an option of the command alone", name), o = NULL;
    else if (o)
        good = option_store(&im->option, &im->arena, o, value, &t);
    else
        explain_option(&t, name, COMMANDS);
    if (o && !good)
        text_printf(&im->messages, "isamap: --%s%s%s%s: %s\n", name, value ? " '" : "",
                    value ? value : "", value ? "'" : "", t.at);
    else if (!good)
        text_printf(&im->messages, "isamap: %s\n", t.at);
    text_free(&t);
    return good ? ISAMAP_DONE : ISAMAP_USAGE;
}

/* Status of `body`. Where memory ends within it, arena and options are as they were before it. */
static int within_memory(isamap *im, int (*body)(isamap *, const void *), const void *user) {
    struct memory_scope scope;
    const struct arena arena = im->arena;
    const struct options option = im->option;
    memory_scope_open(&scope);
    if (setjmp(scope.escape)) {
        im->arena = arena;
        im->option = option;
        return call_out_of_memory(im, scope.wanted);
    }
    int status = body(im, user);
    memory_scope_close(&scope);
    return status;
}

struct setting {
    const char *name, *value;
};

static int set(isamap *im, const void *user) {
    const struct setting *s = user;
    clear_messages(im);
    return set_option(im, s->name, s->value);
}

int isamap_option(isamap *im, const char *name, const char *value) {
    const struct setting s = {name ? name : "", value};
    return im ? within_memory(im, set, &s) : ISAMAP_USAGE;
}

/* ---- what is being done ---- */

void doing(isamap *im, const char *phase) {
    struct doing *d = &im->doing;
    char words[sizeof d->line[0]], *line = d->line[d->turn];
    snprintf(words, sizeof words, "%s%s%s", d->item, *d->item ? ": " : "", phase);
    memcpy(line, words, sizeof words);
    d->turn = !d->turn;
    d->now = line;
}

void doing_item(isamap *im, int at, int all, const char *name) {
    snprintf(im->doing.item, sizeof im->doing.item, "%d/%d %s", at, all, name);
}

static void doing_nothing(isamap *im) {
    im->doing.now = NULL;
    *im->doing.item = 0;
}

const char *isamap_doing(const isamap *im) {
    const char *now = im ? im->doing.now : NULL;
    return now ? now : "";
}

/* ---- calls ---- */

void call_begin(isamap *im) {
    im->defect = im->unmapped = im->exhausted = false;
    diags_free(&im->diags);
    diags_init(&im->diags);
    report_free(&im->report);
    report_init(&im->report);
    im->note = NULL;
    im->nnotes = im->notes_cap = 0;
    clear_messages(im);
    doing(im, "reading");
}

int call_out_of_memory(isamap *im, size_t wanted) {
    doing_nothing(im);
    diags_init(&im->diags);
    text_free(&im->report.text);
    text_free(&im->report.json);
    im->report = (struct report){0};
    text_free(&im->messages);
    im->note = NULL;
    im->nnotes = im->notes_cap = 0;
    if (wanted)
        snprintf(
            im->last_message, sizeof im->last_message,
            "error: not enough memory for %zu bytes, expected a smaller program or more memory\n",
            wanted);
    else
        snprintf(im->last_message, sizeof im->last_message,
                 "error: not enough memory, expected a smaller program or more memory\n");
    snprintf(im->last_result, sizeof im->last_result,
             "{\n  \"error\": \"%.*s\",\n  \"status\": %d\n}\n",
             (int)strcspn(im->last_message, "\n") - 7, im->last_message + 7, ISAMAP_RESOURCES);
    return ISAMAP_RESOURCES;
}

static bool call_accepts(isamap *im, const struct api_call *c, const char *file, const char *out) {
    const char *missing = c->file && !file ? c->file : c->out && !out ? c->out : NULL;
    if (missing) diag_line(&im->diags, c->name, 0, 0, "'%s' is NULL, expected a text", missing);
    return !missing;
}

/* What is written at the end has a place. */
static bool outputs_have_places(isamap *im, const char *out) {
    const struct options *o = &im->option;
    const char *const file[] = {out, o->record, o->trace, o->profile_trace, o->log};
    bool good = !o->output_dir || file_writable(o->output_dir, true, &im->diags);
    for (size_t i = 0; i < sizeof file / sizeof *file; i++)
        good = (!file[i] || file_writable(file[i], false, &im->diags)) && good;
    return good;
}

struct calling {
    const struct api_call *call;
    const char *file, *out;
};

static int run(isamap *im, const void *user) {
    const struct calling *c = user;
    call_begin(im);
    int status = !call_accepts(im, c->call, c->file, c->out) ? ISAMAP_USAGE
                 : !outputs_have_places(im, c->out)          ? ISAMAP_INPUT
                                                             : ISAMAP_DONE;
    return call_end(im, status == ISAMAP_DONE ? c->call->run(im, c->file, c->out) : status);
}

int call_run(isamap *im, const struct api_call *c, const char *file, const char *out) {
    const struct calling calling = {c, file, out};
    return im ? within_memory(im, run, &calling) : ISAMAP_USAGE;
}

/* What the diagnostics say, for a program to read. */
static void note_messages(isamap *im) {
    for (int i = 0; i < im->diags.n; i++) {
        const struct diag *d = &im->diags.at[i];
        if (im->nnotes == im->notes_cap)
            GROW(&im->report.arena, im->note, im->nnotes, im->notes_cap);
        im->note[im->nnotes++] = (struct note){
            .file = d->file ? arena_strdup(&im->report.arena, d->file) : NULL,
            .text = arena_strdup(&im->report.arena, d->text),
            .line = d->line,
            .column = d->col,
            .warning = d->warning,
        };
    }
}

/* status, and what was said: members of every result in JSON. */
static void report_end(isamap *im, int status) {
    struct report *r = &im->report;
    const char *error = NULL;
    for (int i = 0; i < im->nnotes && !error; i++)
        if (!im->note[i].warning) error = im->note[i].text;
    report_reopen(r);
    if (status != ISAMAP_DONE) report_string(r, "error", error ? error : status_text(status));
    if (im->nnotes) report_open(r, "messages", '[');
    for (int i = 0; i < im->nnotes; i++) {
        const struct note *n = &im->note[i];
        report_open(r, NULL, '{');
        if (n->file) report_string(r, "file", n->file);
        if (n->line) report_integer(r, "line", n->line);
        if (n->line && n->column) report_integer(r, "column", n->column);
        report_string(r, "severity", n->warning ? "warning" : "error");
        report_string(r, "text", n->text);
        report_close(r);
    }
    if (im->nnotes) report_close(r);
    report_integer(r, "status", status);
    report_close(r);
}

void messages_take(isamap *im) {
    if (im->option.json) note_messages(im);
    diags_text(&im->diags, &im->messages);
    im->exhausted |= im->diags.exhausted;
    diags_free(&im->diags);
    diags_init(&im->diags);
}

int call_end(isamap *im, int status) {
    bool errors = im->diags.errors > 0;
    messages_take(im);
    doing_nothing(im);
    if (status == ISAMAP_DONE && errors) status = ISAMAP_INPUT;
    if (im->unmapped) status = ISAMAP_NO_MAPPING;
    if (im->exhausted) status = ISAMAP_RESOURCES;
    if (im->defect) status = ISAMAP_DEFECT;
    if (im->option.json) report_end(im, status);
    return status;
}

const char *isamap_result(const isamap *im) {
    if (im && im->option.json && *im->last_message) return im->last_result;
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
