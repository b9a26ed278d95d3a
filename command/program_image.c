/* The image of a compiled program: what `isamap compile -o x.bin` writes, and `isamap show` reads.
 */
#include "command/isamap_int.h"
#include "backends/bits/bits.h"
#include "backends/interface.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

enum { STREAM_ALIGN = 64 };

/* The walk of a schedule whose device takes down what it would have to execute. */
struct recorder {
    isamap *im;
    const struct job *job;
    struct bits_encoder *encoder;
    struct bits_launch launch;
    int64_t address; /* of the stream */
    uint8_t *home;   /* the memory as it is before the launch */
    int64_t bytes;
    bool launched;
};

static bool record_step(void *user, const struct node *n, const int64_t *value,
                        const int64_t *slot) {
    struct recorder *r = user;
    return bits_add(r->encoder, n, value, slot);
}

static bool host_work(struct recorder *r) {
    diag_line(&r->im->diags, r->job->path, 0, 0,
              "'%s' has work for the host between or after what '%s' does, expected a program that "
              "the device runs alone; `isamap sim --rtl` runs both",
              r->job->name, r->job->machine->name);
    return false;
}

static bool record_run(void *user, uint8_t *home, int64_t bytes, bool prepare) {
    struct recorder *r = user;
    if (!bits_pending(r->encoder)) return true;
    if (prepare || r->launched) return host_work(r);
    r->launched = true;
    r->address = (bytes + STREAM_ALIGN - 1) / STREAM_ALIGN * STREAM_ALIGN;
    r->bytes = bytes;
    r->home = memory_bytes((size_t)bytes + 1);
    memcpy(r->home, home, (size_t)bytes);
    return bits_take(r->encoder, r->address, &r->launch);
}

/* Constants must be known: the image has them as the device wants them. */
static bool constants_given(isamap *im, const struct job *j) {
    const struct program *p = j->program;
    for (int b = 0; b < p->nbuffers; b++) {
        const char *name = p->buffer[b].name;
        bool given = p->buffer[b].role != ROLE_CONST || (j->model && j->model->data[b]);
        for (int i = 0; i < im->option.input.n; i++)
            given = given || !strcmp(im->option.input.at[i].name, name);
        if (given) continue;
        diag_line(&im->diags, j->path, 0, 0,
                  "constant '%s' has no value, but an image holds constants; expected --input "
                  "%s=FILE.npy",
                  name, name);
        return false;
    }
    return true;
}

static bool has_host_work(const struct schedule *s, const struct node *node, int n) {
    const struct machine *m = s->machine;
    for (int k = 0; k < n; k++) {
        if (node[k].kind == NODE_FALLBACK) return true;
        if (node[k].kind == NODE_ISSUE && m->instr[node[k].issue->instr].queue >= 0 &&
            machine_queue_is_host(m, m->instr[node[k].issue->instr].queue))
            return true;
        if (node[k].kind == NODE_LOOP && has_host_work(s, node[k].loop->body, node[k].loop->nbody))
            return true;
    }
    return false;
}

static void add_array(const struct schedule *s, const struct place *p, struct bits_array *a) {
    const struct buffer *b = interface_array(s, p->buffer);
    *a = (struct bits_array){.name = b->name,
                             .role = b->role,
                             .type = b->type,
                             .ndims = b->ndims,
                             .address = p->address,
                             .bytes = b->elements * (int64_t)type_size(b->type)};
    memcpy(a->extent, b->extent, (size_t)b->ndims * sizeof *a->extent);
}

static void write_image(struct recorder *r, struct text *t) {
    const struct schedule *s = r->job->schedule;
    struct bits_image i = {.machine = s->machine->name,
                           .program = s->program->name,
                           .reg = r->launch.reg,
                           .nregs = r->launch.nregs,
                           .address = r->address,
                           .n = r->launch.n,
                           .bytes = r->launch.bytes,
                           .stream = r->launch.stream,
                           .end = r->address + r->launch.bytes};
    i.array = memory_array((size_t)s->nplaces + 1, sizeof *i.array);
    i.blob = memory_array((size_t)s->nplaces + 1, sizeof *i.blob);
    for (int k = 0; k < s->nplaces; k++) {
        const struct place *p = &s->place[k];
        bool constant =
            p->keep == KEEP_PREPARED ||
            (p->keep == KEEP_ARGUMENT && s->program->buffer[p->buffer].role == ROLE_CONST);
        if (constant)
            i.blob[i.nblobs++] = (struct bits_blob){p->address, p->bytes, r->home + p->address};
        else if (p->keep == KEEP_ARGUMENT)
            add_array(s, p, &i.array[i.narrays++]);
    }
    bits_image_write(&i, t);
    free(i.array);
    free(i.blob);
}

static bool record(struct recorder *r) {
    isamap *im = r->im;
    const struct job *j = r->job;
    struct arrays in = {0}, got = {0};
    struct sim_device device = {record_step, record_run, r};
    struct sim_options options = {.device = &device};
    struct sim_result result = {0};
    bool ok = arrays_fill(im, j, &in);
    if (ok) {
        got = arrays_copy(j, &in);
        void **data = arrays_for_schedule(j, &got);
        ok = sim_run(j->schedule, data, &options, &result, &im->diags);
        sim_result_free(&result);
        free(data);
    }
    if (in.data) arrays_free(&in);
    if (got.data) arrays_free(&got);
    return ok;
}

static bool fits(struct recorder *r) {
    const struct memory *home = &r->job->machine->memory[r->job->machine->home];
    if (home->size < 0 || r->address + r->launch.bytes <= home->size) return true;
    diag_line(&r->im->diags, r->job->path, 0, 0,
              "arrays and instructions take %lld bytes of '%s', which has %lld",
              (long long)(r->address + r->launch.bytes), home->id, (long long)home->size);
    return false;
}

bool job_speaks_bits(isamap *im, const struct job *j) {
    if (bits_spoken(j->machine)) return true;
    diag_line(&im->diags, j->machine->file, 0, 0,
              "no instruction of '%s' has bit fields, expected emits as bits", j->machine->name);
    return false;
}

bool image_compile(isamap *im, const struct job *j, struct text *out) {
    struct recorder r = {.im = im, .job = j};
    if (!job_speaks_bits(im, j) || !constants_given(im, j)) return false;
    if (has_host_work(j->schedule, j->schedule->run.node, j->schedule->run.nnodes))
        return host_work(&r);
    r.encoder = bits_open(j->schedule, 0, &im->diags);
    bool ok = record(&r);
    if (ok && !r.launched) ok = bits_take(r.encoder, 0, &r.launch);
    ok = ok && fits(&r);
    if (ok) write_image(&r, out);
    free(r.home);
    bits_close(r.encoder);
    return ok;
}

bool image_show(isamap *im, struct job *j, bool schedule, struct text *out) {
    struct bindings set;
    if (!im->option.machine) {
        diag_line(&im->diags, j->path, 0, 0, "an image is shown for a machine: add -m MACHINE");
        return false;
    }
    if (!pairs_bindings(im, &im->option.param, "--param", &j->arena, &set)) return false;
    j->machine = machine_load(im->option.machine, &set, &im->diags);
    struct bits_image *i = j->machine ? bits_image_read(&j->arena, j->path, &im->diags) : NULL;
    if (i && schedule) return bits_image_schedule(j->machine, i, j->path, out, &im->diags);
    return i && bits_disassemble(j->machine, i, j->path, out, &im->diags);
}
