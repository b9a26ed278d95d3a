/* Code in this process: a loaded program, its arguments, its runs (isamap.h, isamap_code). */
#include "command/isamap_int.h"
#include "ir/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 1024 };

struct isamap_code {
    struct job job;
    struct executable *executable;
    bool prepared;
    void **data;   /* by buffer of schedule.program */
    int *argument; /* buffers of job.program */
    int narguments;
    int64_t *size; /* of job.program's sizes */
    struct diags diags;
    struct text messages;   /* of the last call */
    char last_message[128]; /* in their place, when there was no memory for them; "" */
};

/* ---- loading ---- */

static bool load_executable(isamap *im, isamap_code *c) {
    const struct backend *backend = NULL;
    if (job_machine(im, &c->job, USE_RUN) && job_program(im, &c->job) && job_compile(im, &c->job))
        backend = backend_find(c->job.schedule, NULL, &im->diags);
    if (backend)
        c->executable = backend->load(
            c->job.schedule,
            &(struct backend_options){.target = im->option.target, .cache = c->job.cache},
            &im->diags);
    return c->executable;
}

static void list_arguments(isamap_code *c) {
    const struct program *p = c->job.program;
    struct arena *a = &c->job.arena;
    c->data = arena_array(a, (size_t)c->job.schedule->program->nbuffers + 1, sizeof *c->data);
    c->argument = arena_array(a, (size_t)p->nbuffers + 1, sizeof *c->argument);
    c->size = arena_array(a, (size_t)p->nsizes + 1, sizeof *c->size);
    for (int k = 0; k < p->nsizes; k++) c->size[k] = p->size[k].hi;
    for (int b = 0; b < p->nbuffers; b++)
        if (is_argument(&p->buffer[b])) c->argument[c->narguments++] = b;
}

static isamap_code *load(isamap *im, const char *path) {
    isamap_code *c = memory_array(1, sizeof *c);
    job_init(&c->job, path ? path : "");
    c->job.keeps = true;
    diags_init(&c->diags);
    text_append(&c->messages, "", 0);
    int status = path ? ISAMAP_INPUT : ISAMAP_USAGE;
    if (!path)
        diag_line(&im->diags, "isamap_load", 0, 0, "'program' is NULL, expected a path");
    else if (load_executable(im, c))
        status = ISAMAP_DONE;
    if (call_end(im, status) == ISAMAP_DONE) return list_arguments(c), c;
    isamap_code_free(c);
    return NULL;
}

isamap_code *isamap_load(isamap *im, const char *path) {
    struct memory_scope scope;
    if (!im) return NULL;
    memory_scope_open(&scope);
    if (setjmp(scope.escape)) {
        call_out_of_memory(im, scope.wanted);
        return NULL;
    }
    call_begin(im);
    isamap_code *c = load(im, path);
    memory_scope_close(&scope);
    return c;
}

void isamap_code_free(isamap_code *c) {
    if (!c) return;
    if (c->executable) executable_free(c->executable);
    job_free(&c->job);
    diags_free(&c->diags);
    text_free(&c->messages);
    free(c);
}

/* ---- messages ---- */

struct code_call {
    int (*run)(isamap_code *, const void *argument);
    const void *argument;
};

static int code_call(isamap_code *c, const struct code_call *call) {
    struct memory_scope scope;
    if (!c) return ISAMAP_USAGE;
    memory_scope_open(&scope);
    if (setjmp(scope.escape)) {
        diags_init(&c->diags);
        snprintf(c->last_message, sizeof c->last_message,
                 "error: not enough memory for %zu bytes\n", scope.wanted);
        return ISAMAP_RESOURCES;
    }
    *c->last_message = 0;
    c->messages.n = 0;
    text_append(&c->messages, "", 0);
    diags_free(&c->diags);
    diags_init(&c->diags);
    int status = call->run(c, call->argument);
    diags_text(&c->diags, &c->messages);
    memory_scope_close(&scope);
    return status;
}

const char *isamap_code_messages(const isamap_code *c) {
    if (c && *c->last_message) return c->last_message;
    return c && c->messages.at ? c->messages.at : "";
}

/* ---- arguments ---- */

int isamap_code_arguments(const isamap_code *c) {
    return c ? c->narguments : 0;
}

const char *isamap_code_argument(const isamap_code *c, int i, size_t *bytes, int *is_output) {
    if (!c || i < 0 || i >= c->narguments) return NULL;
    const struct buffer *b = &c->job.program->buffer[c->argument[i]];
    if (bytes) *bytes = (size_t)b->elements * type_size(b->type);
    if (is_output) *is_output = b->role == ROLE_OUT || b->role == ROLE_INOUT;
    return b->name;
}

static int bind_arguments(isamap_code *c, void *const *args) {
    const struct program *p = c->job.program;
    if (!args && c->narguments) {
        diag_line(&c->diags, NULL, 0, 0, "'args' is NULL, expected %d pointers", c->narguments);
        return ISAMAP_USAGE;
    }
    for (int i = 0; i < c->narguments; i++) {
        int b = c->argument[i], to = program_buffer(c->job.schedule->program, p->buffer[b].name);
        const void *weights = weights_of(&c->job, b);
        void *at = args[i] ? args[i] : (void *)(uintptr_t)weights;
        if (!at) {
            diag_line(&c->diags, NULL, 0, 0,
                      "argument %d, '%s', is NULL, expected an array of %" PRId64 " bytes", i,
                      p->buffer[b].name,
                      p->buffer[b].elements * (int64_t)type_size(p->buffer[b].type));
            return ISAMAP_USAGE;
        }
        if (to >= 0) c->data[to] = at;
    }
    return ISAMAP_DONE;
}

/* ---- prepare, sizes, run ---- */

static int prepare(isamap_code *c, const void *args) {
    int status = bind_arguments(c, args);
    if (status != ISAMAP_DONE) return status;
    c->prepared = executable_prepare(c->executable, c->data, &c->diags);
    return c->prepared ? ISAMAP_DONE : ISAMAP_DEFECT;
}

int isamap_code_prepare(isamap_code *c, void *const *args) {
    return code_call(c, &(struct code_call){prepare, args});
}

struct size_call {
    const char *name;
    int64_t value;
};

static int set_size(isamap_code *c, const void *argument) {
    const struct size_call *set = argument;
    const struct program *p = c->job.program;
    for (int k = 0; set->name && k < p->nsizes; k++) {
        if (strcmp(p->size[k].name, set->name) != 0) continue;
        if (size_within(&p->size[k], set->value) != set->value) {
            diag_line(&c->diags, NULL, 0, 0,
                      "'%s' is %" PRId64 ", expected %" PRId64 " to %" PRId64, set->name,
                      set->value, p->size[k].lo, p->size[k].hi);
            return ISAMAP_INPUT;
        }
        c->size[k] = set->value;
        executable_sizes(c->executable, c->size);
        return ISAMAP_DONE;
    }
    diag_line(&c->diags, NULL, 0, 0, "'%s' leaves no size '%s' open", c->job.name,
              set->name ? set->name : "NULL");
    return ISAMAP_USAGE;
}

int isamap_code_size(isamap_code *c, const char *name, int64_t value) {
    return code_call(c, &(struct code_call){set_size, &(struct size_call){name, value}});
}

struct run_call {
    void *const *args;
    int threads;
};

static int run(isamap_code *c, const void *argument) {
    const struct run_call *r = argument;
    if (r->threads < 1 || r->threads > MOST_THREADS) {
        diag_line(&c->diags, NULL, 0, 0, "%d threads, expected 1 to %d", r->threads, MOST_THREADS);
        return ISAMAP_USAGE;
    }
    if (!c->prepared) {
        diag_line(&c->diags, NULL, 0, 0,
                  "the constants are not prepared, expected isamap_code_prepare before");
        return ISAMAP_USAGE;
    }
    int status = bind_arguments(c, r->args);
    if (status != ISAMAP_DONE) return status;
    return executable_run(c->executable, c->data, r->threads, &c->diags) ? ISAMAP_DONE
                                                                         : ISAMAP_DEFECT;
}

int isamap_code_run(isamap_code *c, void *const *args, int threads) {
    return code_call(c, &(struct code_call){run, &(struct run_call){args, threads}});
}
