#include "backends/backends_int.h"
#include "backends/interface.h"
#include "ir/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const struct backend *const backends[] = {
#if ISAMAP_WITH_LLVM
    &backend_cpu,
#endif
    &backend_c,
    &backend_cuda,
    NULL,
};

static bool has_suffix(const struct backend *b, const char *suffix) {
    for (int i = 0; b->suffixes[i]; i++)
        if (!strcmp(b->suffixes[i], suffix)) return true;
    return false;
}

static void report_none(const struct schedule *s, const char *suffix, bool accepted,
                        struct diags *diags) {
    const char *llvm = NULL, *c = NULL;
    if (accepted) {
        struct text known = {0};
        for (int i = 0; backends[i]; i++)
            for (int k = 0; backends[i]->accepts(s) && backends[i]->suffixes[k]; k++) {
                char word[16];
                snprintf(word, sizeof word, " %s,", backends[i]->suffixes[k]);
                if (!known.n || !strstr(known.at, word)) text_printf(&known, "%s", word);
            }
        diag_line(diags, s->machine->file, 0, 0,
                  "no backend that can compile for '%s' writes '%s', expected one of%s or .sched",
                  s->machine_name, suffix, known.at);
        text_free(&known);
        return;
    }
    bool speaks_llvm = schedule_speaks(s, LANGUAGE_LLVM, &llvm);
    schedule_speaks(s, LANGUAGE_C, &c);
#if ISAMAP_WITH_LLVM
    assert(!speaks_llvm);
#else
    if (speaks_llvm) {
        diag_line(
            diags, s->machine->file, 0, 0,
            "'%s' has no emit as c on machine '%s', and this isamap was built without LLVM support",
            c ? c : "the program", s->machine_name);
        return;
    }
#endif
    (void)speaks_llvm;
    diag_line(diags, s->machine->file, 0, 0,
              "no backend can compile for '%s': '%s' has no emit as llvm and '%s' has none as c; "
              "'isamap sim' "
              "executes any machine",
              s->machine_name, llvm ? llvm : "the program", c ? c : "the program");
}

const struct backend *backend_find(const struct schedule *s, const char *suffix,
                                   struct diags *diags) {
    bool accepted = false;
    for (int i = 0; backends[i]; i++) {
        if (!backends[i]->accepts(s)) continue;
        accepted = true;
        if (!suffix || has_suffix(backends[i], suffix)) return backends[i];
    }
    report_none(s, suffix, accepted, diags);
    return NULL;
}

/* ---- features ---- */

bool features_ready(const struct schedule *s, struct diags *diags) {
    const struct machine *m = s->machine;
    uint64_t features = schedule_features(s);
    if (!machine_runs_here(m, diags)) return false;
    for (int f = 0; f < m->nfeatures && f < 64; f++) {
        if (!(features >> f & 1)) continue;
        if (!machine_feature_present(&m->feature[f])) {
            diag_line(diags, m->file, 0, 0,
                      "this processor lacks '%s', which an instruction of '%s' needs",
                      m->feature[f].id, m->name);
            return false;
        }
    }
    return true;
}

/* ---- executables ---- */
struct executable *executable_make(const struct schedule *s, void *handle, void (*release)(void *),
                                   void *const entry[4]) {
    struct executable *e = memory_array(1, sizeof *e);
    size_t (*prepared_bytes)(void), (*workspace_bytes)(void);
    arena_init(&e->arena);
    e->handle = handle;
    e->release = release;
    memcpy(&e->prepare, &entry[0], sizeof entry[0]);
    memcpy(&e->run, &entry[1], sizeof entry[1]);
    memcpy(&prepared_bytes, &entry[2], sizeof entry[2]);
    memcpy(&workspace_bytes, &entry[3], sizeof entry[3]);
    e->prepared_bytes = prepared_bytes();
    e->workspace_bytes = workspace_bytes();
    e->prepared = memory_take(e->prepared_bytes + 64, 1);
    e->workspace = memory_take(e->workspace_bytes + 64, 1);
    e->buffer = arena_array(&e->arena, (size_t)s->program->nbuffers + 1, sizeof *e->buffer);
    e->nbuffers = schedule_arguments(s, e->buffer);
    e->name = arena_array(&e->arena, (size_t)e->nbuffers + 1, sizeof *e->name);
    for (int i = 0; i < e->nbuffers; i++)
        e->name[i] = arena_strdup(&e->arena, s->program->buffer[e->buffer[i]].name);
    e->nsizes = s->program->nsizes;
    e->args = arena_array(&e->arena, (size_t)e->nbuffers + 2 + (size_t)e->nsizes, sizeof *e->args);
    for (int k = 0; k < e->nsizes; k++)
        memcpy(&e->args[e->nbuffers + 2 + k], &s->program->size[k].hi, sizeof(int64_t));
    return e;
}

static bool set_arguments(struct executable *e, void *const *data, int threads,
                          struct diags *diags) {
    for (int i = 0; i < e->nbuffers; i++) {
        e->args[i] = data[e->buffer[i]];
        if (e->args[i]) continue;
        diag_line(diags, NULL, 0, 0, "buffer '%s' has no array", e->name[i]);
        return false;
    }
    e->args[e->nbuffers] = e->prepared;
    memcpy(&e->args[e->nbuffers + 1], &threads, sizeof threads);
    return true;
}

static bool finished(const struct executable *e, int status, const char *entry,
                     struct diags *diags) {
    bool known = status > 0 && status < INTERFACE_STATUSES;
    if (status)
        diag_line(diags, NULL, 0, 0, "'%s' of the compiled program gave %d: %s", entry, status,
                  !known       ? "unknown"
                  : e->message ? e->message(status)
                               : interface_message[status]);
    return status == 0;
}

void executable_scramble(struct executable *e) {
    memset(e->prepared, 0xff, e->prepared_bytes);
    memset(e->workspace, 0xff, e->workspace_bytes);
}

bool executable_prepare(struct executable *e, void *const *data, struct diags *diags) {
    if (!set_arguments(e, data, 0, diags)) return false;
    e->is_prepared = finished(e, e->prepare(e->args), "prepare", diags);
    return e->is_prepared;
}

void executable_sizes(struct executable *e, const int64_t *size) {
    for (int k = 0; k < e->nsizes; k++)
        memcpy(&e->args[e->nbuffers + 2 + k], &size[k], sizeof *size);
}

bool executable_run(struct executable *e, void *const *data, int threads, struct diags *diags) {
    assert(e->is_prepared);
    return set_arguments(e, data, threads, diags) &&
           finished(e, e->run(e->args, e->workspace), "run", diags);
}

int executable_parts(const struct executable *e, const struct run_part **out) {
    *out = e->part;
    return e->nparts;
}

const uint64_t *executable_ticks(const struct executable *e) {
    return e->ticks;
}

double executable_device_seconds(const struct executable *e) {
    return e->device_seconds ? e->device_seconds() : -1;
}

bool executable_device_rounds(struct executable *e, int rounds, int64_t span) {
    if (e->device_rounds) e->device_rounds(rounds, (size_t)span);
    return e->device_rounds != NULL;
}

int64_t executable_bytes(const struct executable *e) {
    return (int64_t)(e->prepared_bytes + e->workspace_bytes);
}

void executable_free(struct executable *e) {
    if (!e) return;
    if (e->release) e->release(e->handle);
    memory_give(e->prepared);
    memory_give(e->workspace);
    arena_free(&e->arena);
    free(e);
}
