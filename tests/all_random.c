/* Random small programs × every machine file × random approach, against the interpreter: covers and
 * schedules are verified, every machine is simulated, code is run where the machine is this CPU.
 * Any file in machines/ takes part; so do those of tests/data/machines. Each compilation is a
 * process of its own, so a crash or a hang is a failure like others; a failing program is made
 * smaller before it is printed.
 *
 * Programs that once failed are in tests/data/found: the first line of each names the machine, the
 * seed (which chooses approach, threads and data) and what was wrong.
 *
 * Then the machine files are varied: depths, sizes, alignments and times are others.
 *
 * ISAMAP_RANDOM=N sets how many programs (default: some seconds' worth), ISAMAP_VARIED=N how many
 * varied machines, ISAMAP_SEED the first seed, ISAMAP_MACHINE=NAME the only machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "approaches/approaches.h"
#include "backends/backend.h"
#include "ir/interp.h"
#include "mapper/mapper.h"
#include "scheduler/scheduler.h"
#include "sim/sim.h"
#include "tests/random_machine.h"

#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MACHINES = 96, PER_PROGRAM = 4, CPU_SECONDS = 60, SHRINKS = 150 };

/* ---- machines ---- */
struct bench {
    char file[100]; /* of a device: + its host, where that is not the smallest */
    struct machine *machine;
    bool run; /* its code runs here */
    struct schemes native;
    int tried, refused, mapped, failed; /* mapped: an instruction has a part in it */
    double slowest;                     /* compilation, seconds */
};

/* Types of the machine's products. */
static void find_schemes(const struct machine *m, struct schemes *out) {
    for (int i = 0; i < m->ninstrs && out->n < 16; i++) {
        const struct instr *in = &m->instr[i];
        const char *type[2] = {NULL, NULL}, *sum = NULL;
        bool known = false;
        for (int o = 0, reads = 0; o < in->noperands; o++) {
            if (in->operand[o].role == ROLE_IN && reads < 2)
                type[reads++] = type_name(in->operand[o].type);
            if (in->operand[o].role == ROLE_INOUT) sum = type_name(in->operand[o].type);
        }
        if (in->is_move || !type[1] || !sum) continue;
        for (int k = 0; k < out->n; k++)
            known |= !strcmp(out->at[k].a, type[0]) && !strcmp(out->at[k].b, type[1]) &&
                     !strcmp(out->at[k].sum, sum);
        if (!known) out->at[out->n++] = (struct scheme){type[0], type[1], sum};
    }
}

/* A board's device is not here, whatever its host has. */
static bool runs_here(const struct machine *m) {
    struct diags d;
    diags_init(&d);
    bool runs = machine_runs_here(m, &d);
    for (int i = 0; i < m->ninstrs; i++)
        runs &= !instr_emit(&m->instr[i], LANGUAGE_BITS) ||
                instr_emit(&m->instr[i], LANGUAGE_LLVM) || instr_emit(&m->instr[i], LANGUAGE_C);
    diags_free(&d);
    return runs;
}

static void add_bench(struct bench *b, int *n, const char *file, const char *host) {
    const char *only = getenv("ISAMAP_MACHINE");
    bool plain = !host || !strcmp(host, "cpu-scalar"), shipped = strstr(file, "tests/data") == NULL;
    struct bench x = {0};
    struct diags d;
    snprintf(x.file, sizeof x.file, "%s%s%s", file + strlen(SOURCE_DIR) + 1, plain ? "" : "+",
             plain ? "" : host);
    if (*n == MACHINES || (only && !strstr(x.file, only))) return;
    diags_init(&d);
    x.machine = host ? machine_join(file, host, NULL, &d) : machine_load(file, NULL, &d);
    diags_print(&d, stderr);
    assert_non_null(x.machine);
    x.run = shipped && !host && runs_here(x.machine);
    find_schemes(x.machine, &x.native);
    b[(*n)++] = x;
    diags_free(&d);
}

static bool is_device(const char *file) {
    struct diags d;
    diags_init(&d);
    struct machine *m = machine_load(file, NULL, &d);
    diags_print(&d, stderr);
    assert_non_null(m);
    bool device = machine_needs_host(m);
    machine_free(m);
    diags_free(&d);
    return device;
}

/* Devices beside a host without instructions, and beside one that has some. */
static int load_benches(struct bench *b) {
    glob_t files;
    int n = 0;
    glob(SOURCE_DIR "/machines/*.xml", 0, NULL, &files);
    glob(SOURCE_DIR "/tests/data/machines/*.xml", GLOB_APPEND, NULL, &files);
    glob(SOURCE_DIR "/tests/data/machines/*/*.xml", GLOB_APPEND, NULL, &files);
    for (size_t k = 0; k < files.gl_pathc; k++) {
        const char *file = files.gl_pathv[k];
        bool device = is_device(file);
        add_bench(b, &n, file, device ? "cpu-scalar" : NULL);
        if (device) add_bench(b, &n, file, "cpu-avx2");
    }
    globfree(&files);
    return n;
}

/* ---- data ---- */
static void **make_data(const struct program *p, uint64_t seed) {
    void **data = calloc((size_t)p->nbuffers + 1, sizeof *data);
    struct tape r = {.s = seed * 77 + 1};
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        if (x->role == ROLE_TEMP) continue;
        data[b] = calloc((size_t)x->elements + 1, type_size(x->type));
        for (int64_t e = 0; e < x->elements && x->role != ROLE_OUT; e++) {
            r.pos = 0;
            int n = pick(&r, 256) - 128;
            union value v;
            if (type_is_float(x->type))
                v.f = (n >> 2) / 16.0; /* sums of products stay exact */
            else
                v.i = type_is_signed(x->type) ? n : n + 128;
            type_store(x->type, (char *)data[b] + (size_t)e * type_size(x->type), v);
        }
    }
    return data;
}

static void free_data(const struct program *p, void **data) {
    for (int b = 0; b < p->nbuffers; b++) free(data[b]);
    free(data);
}

/* Inputs as they were, outputs full of rubbish. */
static void reset_data(const struct program *p, void **data, void **fresh) {
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        size_t bytes = (size_t)x->elements * type_size(x->type);
        if (x->role == ROLE_OUT)
            memset(data[b], 0x5a, bytes);
        else if (data[b])
            memcpy(data[b], fresh[b], bytes);
    }
}

static double tolerance(enum type type, bool exact) {
    return type == TYPE_BF16 ? 0x1p-7 : type == TYPE_F16 ? 0x1p-9 : exact ? 1e-5 : 1e-3;
}

static bool same_value(enum type type, union value w, union value g, bool exact) {
    if (!type_is_float(type)) return w.i == g.i;
    if (isnan(w.f) || isinf(w.f)) return isnan(w.f) ? isnan(g.f) : w.f == g.f;
    return fabs(w.f - g.f) <= tolerance(type, exact) * fmax(1, fabs(w.f));
}

static bool equal_outputs(const struct program *p, void **want, void **got, bool exact) {
    for (int b = 0; b < p->nbuffers; b++) {
        const struct buffer *x = &p->buffer[b];
        if (x->role != ROLE_OUT && x->role != ROLE_INOUT) continue;
        for (int64_t e = 0; e < x->elements; e++) {
            size_t at = (size_t)e * type_size(x->type);
            if (!same_value(x->type, type_load(x->type, (char *)want[b] + at),
                            type_load(x->type, (char *)got[b] + at), exact))
                return false;
        }
    }
    return true;
}

static void **rebind(const struct program *from, const struct program *to, void **data) {
    void **out = calloc((size_t)to->nbuffers + 1, sizeof *out);
    for (int b = 0; b < to->nbuffers; b++) {
        int f = to->buffer[b].role == ROLE_TEMP ? -1 : program_buffer(from, to->buffer[b].name);
        if (f >= 0) out[b] = data[f];
    }
    return out;
}

/* ---- one compilation ---- */
struct trial {
    const struct bench *bench;
    uint64_t seed;
    bool exact;
};

static const struct approach *approach_of(uint64_t seed) {
    return approaches[seed % 3 == 0 ? 0 : 1];
}

static int threads_of(uint64_t seed) {
    return seed % 4 == 0 ? 0 : 1;
}

struct values {
    void **fresh, **want, **data, **bound;
};

static const char *simulate(const struct program *p, const struct schedule *s, struct values *x,
                            bool exact, struct diags *d) {
    struct sim_result result = {0};
    const char *wrong = NULL;
    reset_data(p, x->data, x->fresh);
    if (!sim_run(s, x->bound, &(struct sim_options){0}, &result, d))
        wrong = "simulation failed";
    else if (!equal_outputs(p, x->want, x->data, exact))
        wrong = "simulated values differ";
    sim_result_free(&result);
    return wrong;
}

static const char *execute(const struct program *p, const struct schedule *s, struct values *x,
                           bool exact, struct diags *d) {
    const struct backend *backend = backend_find(s, NULL, d);
    struct executable *e = backend ? backend->load(s, &(struct backend_options){0}, d) : NULL;
    const char *wrong = NULL;
    reset_data(p, x->data, x->fresh);
    if (!e)
        wrong = "backend failed";
    else if (!executable_prepare(e, x->bound, d) || !executable_run(e, x->bound, 1, d))
        wrong = "execution failed";
    else if (!equal_outputs(p, x->want, x->data, exact))
        wrong = "executed values differ";
    if (e) executable_free(e);
    return wrong;
}

static const char *try_schedule(const struct program *p, const struct schedule *s,
                                const struct trial *t, struct diags *d) {
    struct values x = {.fresh = make_data(p, t->seed),
                       .want = make_data(p, t->seed),
                       .data = make_data(p, t->seed)};
    const char *wrong = program_run(p, x.want, NULL, NULL, d) ? NULL : "interpreter failed";
    x.bound = rebind(p, s->program, x.data);
    if (!wrong) wrong = simulate(p, s, &x, t->exact, d);
    if (!wrong && t->bench->run) wrong = execute(p, s, &x, t->exact, d);
    free(x.bound);
    free_data(p, x.fresh);
    free_data(p, x.want);
    free_data(p, x.data);
    return wrong;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool has_issue(const struct node *n, int count) {
    for (int k = 0; k < count; k++)
        if (n[k].kind == NODE_ISSUE ||
            (n[k].kind == NODE_LOOP && has_issue(n[k].loop->body, n[k].loop->nbody)))
            return true;
    return false;
}

/* Grids have thousands of instances, of which the first and the last are walked. */
static bool has_grid(const struct machine *m) {
    bool any = false;
    for (int u = 0; u < m->nunits; u++) any |= m->unit[u].is_virtual;
    return any;
}

/* The schedule as its text says it: verified, and printed again the same. */
static const char *try_text(const struct schedule *s, struct diags *d) {
    struct text text = {0}, again = {0};
    schedule_print(s, &text);
    struct source source = {
        .file = "text", .line0 = 1, .col0 = 1, .text = text.at, .length = text.n};
    struct schedule *read = schedule_parse(s->machine, &source, d);
    const char *wrong = read ? NULL : "schedule not read";
    if (read) schedule_print(read, &again);
    if (read && strcmp(text.at, again.at) != 0) wrong = "schedule printed otherwise";
    struct verify_options walk = {.trips = has_grid(s->machine) ? 4 : 0};
    if (!wrong && !schedule_verify(read, &walk, d)) wrong = "schedule not valid";
    if (read) schedule_free(read);
    text_free(&text);
    text_free(&again);
    return wrong;
}

/* NULL: right; "refused": a diagnostic says why there is no schedule; otherwise what is wrong. */
static const char *try_program(const struct program *p, const struct trial *t, double *took,
                               bool *mapped, struct diags *d) {
    struct decider *decider = decider_open(approach_of(t->seed), t->seed);
    struct scheduler_options options = {.threads = threads_of(t->seed)};
    double start = seconds();
    struct cover *cover;
    struct schedule *s =
        scheduler_compile(p, t->bench->machine, REWRITE_REORDERS, decider, &options, &cover, d);
    *took = seconds() - start;
    *mapped = s && has_issue(s->run.node, s->run.nnodes);
    const char *wrong = s ? NULL : d->errors ? "refused" : "no schedule, and no word why";
    if (!wrong && !cover_verify(cover, t->bench->machine, d)) wrong = "cover not valid";
    if (!wrong) wrong = try_text(s, d);
    if (!wrong) wrong = try_schedule(p, s, t, d);
    if (wrong && s && getenv("ISAMAP_SHOW")) {
        struct text text = {0};
        schedule_print(s, &text);
        fprintf(stderr, "%s", text.at);
        text_free(&text);
    }
    if (s) schedule_free(s);
    if (cover) cover_free(cover);
    decider_close(decider);
    return wrong;
}

static struct program *parse(struct arena *a, const char *text, struct diags *d) {
    struct source *source = arena_alloc(a, sizeof *source);
    struct kernel **kernel;
    *source = (struct source){
        .file = "random", .line0 = 1, .col0 = 1, .text = text, .length = strlen(text)};
    return kernel_parse(a, source, &kernel, d) == 1 ? program_bind(kernel[0], NULL, NULL, d) : NULL;
}

static void child(const char *text, const struct trial *t, FILE *out) {
    struct arena a;
    struct diags d;
    double took = 0;
    bool mapped = false;
    arena_init(&a);
    diags_init(&d);
    setrlimit(RLIMIT_CPU, &(struct rlimit){CPU_SECONDS, CPU_SECONDS});
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    struct program *p = parse(&a, text, &d);
    const char *wrong = p ? try_program(p, t, &took, &mapped, &d) : "the program is not right";
    fprintf(out, "%g %d %s\n", took, mapped, wrong ? wrong : "right");
    if (wrong) diags_print(&d, out);
    if (p) program_free(p);
    diags_free(&d);
    arena_free(&a);
}

/* What the child says: a line, then its messages. From the heap. */
static char *read_all(int fd) {
    struct text t = {0};
    char room[4096];
    for (ssize_t n; (n = read(fd, room, sizeof room)) > 0;) text_append(&t, room, (size_t)n);
    close(fd);
    text_append(&t, "", 1);
    return t.at;
}

struct answer {
    char *text;          /* owned */
    const char *message; /* what the compiler said */
    char wrong[64];      /* "": right */
    double took;
    bool mapped;
};

static void judge(struct answer *x, int status) {
    char *line = strchr(x->text, '\n');
    int mapped, word = 0;
    x->message = "";
    if (WIFSIGNALED(status)) {
        int signal = WTERMSIG(status);
        if (signal == SIGXCPU || signal == SIGKILL)
            snprintf(x->wrong, sizeof x->wrong, "it hangs");
        else
            snprintf(x->wrong, sizeof x->wrong, "it crashes (signal %d)", signal);
    } else if (WEXITSTATUS(status) || !line ||
               sscanf(x->text, "%lf %d %n", &x->took, &mapped, &word) != 2) {
        snprintf(x->wrong, sizeof x->wrong, "it ends with status %d", WEXITSTATUS(status));
        x->message = x->text;
    } else {
        *line = 0;
        x->mapped = mapped;
        x->message = line + 1;
        if (strcmp(x->text + word, "right") != 0)
            snprintf(x->wrong, sizeof x->wrong, "%s", x->text + word);
    }
}

static struct answer ask(const char *text, const struct trial *t) {
    int pipes[2], status = 0;
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        FILE *out = fdopen(pipes[1], "w");
        close(pipes[0]);
        dup2(pipes[1], 2);
        child(text, t, out);
        fclose(out);
        exit(0);
    }
    close(pipes[1]);
    struct answer x = {.text = read_all(pipes[0])};
    waitpid(pid, &status, 0);
    judge(&x, status);
    return x;
}

/* ---- smaller ---- */
static bool still_fails(const struct tape *tape, struct trial *t, const char *wrong) {
    struct tape copy = *tape;
    bool same;
    copy.pos = 0;
    char *text = random_program(&copy, &t->bench->native, &t->exact);
    struct answer x = ask(text, t);
    same = strcmp(x.wrong, wrong) == 0;
    free(x.text);
    free(text);
    return same;
}

static void shrink(struct tape *tape, struct trial *t, const char *wrong) {
    int left = SHRINKS;
    bool better = strcmp(wrong, "it hangs") != 0;
    tape->n = tape->pos;
    tape->s = 0;
    while (better && left > 0) {
        better = false;
        for (int k = 0; k < tape->n && left > 0; k++) {
            int was = tape->at[k];
            for (int to = 0; to < was && left > 0; to += to < was - 1 ? (was - to + 1) / 2 : 1) {
                tape->at[k] = to;
                left--;
                if (still_fails(tape, t, wrong)) {
                    better = true;
                    break;
                }
                tape->at[k] = was;
            }
        }
    }
}

static void print_failure(struct tape *tape, struct trial *t, const struct answer *x, bool small) {
    if (small) shrink(tape, t, x->wrong);
    tape->pos = 0;
    char *text = random_program(tape, &t->bench->native, &t->exact);
    struct answer last = ask(text, t);
    fprintf(stderr, "seed %llu on %s, approach %s, threads %d: %s\n%s%s\n",
            (unsigned long long)t->seed, t->bench->file, approach_of(t->seed)->name,
            threads_of(t->seed), x->wrong, *last.wrong ? last.message : x->message, text);
    free(last.text);
    free(text);
}

/* ---- the test ---- */
static void one_program(struct bench *b, uint64_t seed, int *failures) {
    struct tape tape = {.s = seed * 7919 + 13};
    struct trial t = {.bench = b, .seed = seed};
    char *text = random_program(&tape, &b->native, &t.exact);
    struct answer x = ask(text, &t);
    free(text);
    b->tried++;
    if (strcmp(x.wrong, "refused") == 0) {
        b->refused++;
        if (getenv("ISAMAP_REFUSED"))
            fprintf(stderr, "seed %llu on %s: %s", (unsigned long long)seed, b->file, x.message);
    } else if (*x.wrong) {
        b->failed++;
        tape.n = tape.pos;
        print_failure(&tape, &t, &x, ++*failures <= 8);
    }
    b->mapped += x.mapped;
    if (x.took > b->slowest) b->slowest = x.took;
    free(x.text);
}

static void random_programs(void **state) {
    (void)state;
    struct bench *bench = calloc(MACHINES, sizeof *bench);
    int nbenches = load_benches(bench), failures = 0;
    int n = getenv("ISAMAP_RANDOM") ? atoi(getenv("ISAMAP_RANDOM")) : 90;
    uint64_t first = getenv("ISAMAP_SEED") ? strtoull(getenv("ISAMAP_SEED"), NULL, 0) : 1;
    assert_true(nbenches > 0);
    for (uint64_t seed = first; seed < first + (uint64_t)n; seed++)
        for (int k = 0; k < PER_PROGRAM && k < nbenches; k++)
            one_program(&bench[(seed * PER_PROGRAM + (uint64_t)k) % (uint64_t)nbenches], seed,
                        &failures);
    int tried = 0;
    for (int k = 0; k < nbenches; k++) {
        fprintf(stderr,
                "%-44s %5d programs, %5d mapped, %5d refused, %3d wrong; slowest compilation %.3f "
                "s%s\n",
                bench[k].file, bench[k].tried, bench[k].mapped, bench[k].refused, bench[k].failed,
                bench[k].slowest, bench[k].run ? "; executed" : "");
        tried += bench[k].tried;
        machine_free(bench[k].machine);
    }
    free(bench);
    fprintf(stderr, "%d compilations, %d wrong\n", tried, failures);
    assert_true(tried >= n);
    assert_int_equal(failures, 0);
}

/* ---- machines that are not there ---- */

/* The file, varied, under another name; NULL: the checker refuses it, with a message. *what says
 * how it was varied; from the heap. */
static struct machine *varied(const char *file, uint64_t seed, struct text *what) {
    char path[] = "/tmp/isamap-machine-XXXXXX";
    struct tape tape = {.s = seed * 7919 + 13};
    struct arena a;
    struct diags d;
    size_t length;
    arena_init(&a);
    diags_init(&d);
    char *text = file_read(&a, file, 1 << 20, &length, &d);
    assert_non_null(text);
    char *other = vary_machine(text, &tape, what);
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, other, strlen(other)) == (ssize_t)strlen(other));
    close(fd);
    struct machine *m = machine_load(path, NULL, &d);
    if (m && machine_needs_host(m)) {
        machine_free(m);
        m = machine_join(path, "cpu-scalar", NULL, &d);
    }
    assert_true(m || d.errors > 0);
    unlink(path);
    free(other);
    diags_free(&d);
    arena_free(&a);
    return m;
}

/* Files that stand alone, of machines that move data. */
static bool may_vary(const char *file) {
    struct arena a;
    struct diags d;
    size_t length;
    arena_init(&a);
    diags_init(&d);
    const char *text = file_read(&a, file, 1 << 20, &length, &d), *only = getenv("ISAMAP_MACHINE");
    bool may = text && !strstr(text, "<include") && strstr(text, "<move");
    diags_free(&d);
    arena_free(&a);
    return may && (!only || strstr(file, only));
}

static void random_machines(void **state) {
    (void)state;
    int n = getenv("ISAMAP_VARIED") ? atoi(getenv("ISAMAP_VARIED")) : 30;
    uint64_t first = getenv("ISAMAP_SEED") ? strtoull(getenv("ISAMAP_SEED"), NULL, 0) : 1;
    glob_t files;
    const char *chosen[MACHINES];
    int nfiles = 0, machines = 0, mapped = 0, refused = 0, failures = 0;
    glob(SOURCE_DIR "/machines/*.xml", 0, NULL, &files);
    glob(SOURCE_DIR "/tests/data/machines/*/*.xml", GLOB_APPEND, NULL, &files);
    for (size_t k = 0; k < files.gl_pathc; k++)
        if (may_vary(files.gl_pathv[k]) && nfiles < MACHINES) chosen[nfiles++] = files.gl_pathv[k];
    for (uint64_t seed = first; seed < first + (uint64_t)n && nfiles > 0; seed++) {
        struct bench b = {0};
        struct text what = {0};
        const char *file = chosen[seed % (uint64_t)nfiles];
        snprintf(b.file, sizeof b.file, "%s", file + strlen(SOURCE_DIR) + 1);
        b.machine = varied(file, seed, &what);
        if (b.machine) find_schemes(b.machine, &b.native);
        for (int k = 0; k < PER_PROGRAM && b.machine; k++)
            one_program(&b, seed + (uint64_t)k * 1000000007u, &failures);
        if (b.failed)
            fprintf(stderr, "machine of seed %llu, with%s\n", (unsigned long long)seed, what.at);
        machines += b.machine != NULL;
        mapped += b.mapped;
        refused += b.refused;
        machine_free(b.machine);
        text_free(&what);
    }
    globfree(&files);
    fprintf(stderr, "%d varied machines of %d, %d programs mapped, %d refused, %d wrong\n",
            machines, n, mapped, refused, failures);
    assert_true(nfiles > 0 || getenv("ISAMAP_MACHINE"));
    assert_true(n < 20 || nfiles == 0 || mapped > 0);
    assert_int_equal(failures, 0);
}

static bool found_passes(struct bench *bench, int nbenches, const char *file) {
    char line[200] = "", name[100], *text;
    unsigned long long seed;
    struct arena a;
    struct diags d;
    size_t length;
    bool passes = true, known = getenv("ISAMAP_MACHINE") != NULL;
    arena_init(&a);
    diags_init(&d);
    text = file_read(&a, file, 1 << 16, &length, &d);
    assert_non_null(text);
    snprintf(line, sizeof line, "%s", text);
    assert_int_equal(sscanf(line, "# %99s %llu:", name, &seed), 2);
    for (int k = 0; k < nbenches; k++) {
        if (strcmp(bench[k].file, name) != 0) continue;
        known = true;
        struct answer x = ask(text, &(struct trial){.bench = &bench[k], .seed = seed});
        passes = !*x.wrong;
        if (!passes) fprintf(stderr, "%s: %s\n%s", file, x.wrong, x.message);
        free(x.text);
    }
    if (!known) fprintf(stderr, "%s: no machine file '%s'\n", file, name);
    diags_free(&d);
    arena_free(&a);
    return passes && known;
}

static void programs_that_failed(void **state) {
    (void)state;
    struct bench *bench = calloc(MACHINES, sizeof *bench);
    glob_t files;
    int nbenches = load_benches(bench), failures = 0;
    glob(SOURCE_DIR "/tests/data/found/*.isam", 0, NULL, &files);
    assert_true(files.gl_pathc > 0);
    for (size_t k = 0; k < files.gl_pathc; k++)
        failures += !found_passes(bench, nbenches, files.gl_pathv[k]);
    for (int k = 0; k < nbenches; k++) machine_free(bench[k].machine);
    globfree(&files);
    free(bench);
    assert_int_equal(failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_that_failed),
                                       cmocka_unit_test(random_programs),
                                       cmocka_unit_test(random_machines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
