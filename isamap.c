/* The pipeline, and what a program needs around it: machine, sizes, who decides. */
#include "command/isamap_int.h"
#include "ir/nearest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

double now_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void job_init(struct job *j, const char *path) {
    memset(j, 0, sizeof *j);
    arena_init(&j->arena);
    j->path = arena_strdup(&j->arena, path);
}

void job_free(struct job *j) {
    if (j->schedule) schedule_free(j->schedule);
    if (j->cover) cover_free(j->cover);
    if (j->decider) decider_close(j->decider);
    if (j->own_program) program_free(j->own_program);
    if (j->rewritten) program_free(j->rewritten);
    program_free(j->fixed);
    program_free(j->shifted);
    if (j->sized) program_free(j->sized);
    if (j->model) onnx_free(j->model);
    npz_free(&j->expected);
    if (j->machine) machine_free(j->machine);
    text_free(&j->explain);
    text_free(&j->proof_reason);
    text_free(&j->chain_steps);
    arena_free(&j->arena);
}

/* "512", "4K", "2M", "1G" */
bool parse_size(const char *s, int64_t *out) {
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 0);
    if (errno || end == s) return false;
    int64_t unit = *end == 'K' ? 1 << 10 : *end == 'M' ? 1 << 20 : *end == 'G' ? 1 << 30 : 1;
    if (unit > 1) end++;
    return *end == 0 && !__builtin_mul_overflow(v, unit, out);
}

bool pairs_bindings(isamap *im, const struct pairs *p, const char *option, struct arena *a,
                    struct bindings *out) {
    struct binding *b = arena_array(a, (size_t)p->n + 1, sizeof *b);
    for (int i = 0; i < p->n; i++) {
        b[i].name = p->at[i].name;
        if (!parse_size(p->at[i].value, &b[i].value)) {
            diag_line(&im->diags, option, 0, 0,
                      "the value of '%s' is '%s'; expected an integer, with K, M or G",
                      p->at[i].name, p->at[i].value);
            return false;
        }
    }
    *out = (struct bindings){.at = b, .n = p->n};
    return true;
}

/* Dimensions of inputs under the names that onnx_load knows: "x=2,3" is x[] = 2 (their number),
 * x[0] = 2 and x[1] = 3. */
static bool shape_bindings(isamap *im, struct arena *a, const struct bindings *more,
                           struct bindings *out) {
    const struct pairs *p = &im->option.shape;
    struct binding *b = arena_array(a, (size_t)more->n + (size_t)p->n * (MAX_DIMS + 1), sizeof *b);
    int n = more->n;
    if (n) memcpy(b, more->at, (size_t)n * sizeof *b);
    for (int i = 0; i < p->n; i++) {
        const char *at = p->at[i].value;
        struct binding *ndims = &b[n++];
        *ndims = (struct binding){.name = arena_printf(a, "%s[]", p->at[i].name)};
        for (; at && ndims->value < MAX_DIMS; ndims->value++) {
            size_t k = strcspn(at, ",");
            b[n].name = arena_printf(a, "%s[%d]", p->at[i].name, (int)ndims->value);
            if (!parse_size(arena_strndup(a, at, k), &b[n++].value)) break;
            at = at[k] ? at + k + 1 : NULL;
        }
        if (!at) continue;
        diag_line(&im->diags, "--shape", 0, 0,
                  "the shape of '%s' is '%s'; expected at most %d integers with commas between",
                  p->at[i].name, p->at[i].value, MAX_DIMS);
        return false;
    }
    *out = (struct bindings){.at = b, .n = n};
    return true;
}

bool job_machine(isamap *im, struct job *j, enum machine_use use) {
    struct bindings set;
    if (im->option.nthreads > 1) {
        diag_line(&im->diags, "--threads", 0, 0, "several numbers of threads are for `bench`");
        return false;
    }
    if (!pairs_bindings(im, &im->option.param, "--param", &j->arena, &set)) return false;
    const char *name = im->option.machine ? im->option.machine : "host";
    bool any_host = strcmp(name, "host") == 0;
    j->machine = any_host ? machine_host(&im->diags) : machine_open(name, &set, &im->diags);
    if (j->machine && any_host &&
        set.n) { /* the machine is known now: once more, with its parameters */
        char *chosen = arena_strdup(&j->arena, j->machine->file);
        machine_free(j->machine);
        j->machine = machine_open(chosen, &set, &im->diags);
    }
    if (!j->machine) return false;
    if (use == USE_RUN && !im->option.target) machine_fit_here(j->machine);
    if (use == USE_MAP || !machine_needs_host(j->machine)) return true;
    if (use == USE_RUN) {
        diag_line(&im->diags, j->machine->file, 0, 0,
                  "machine '%s' is a device that cannot execute here; use `isamap sim -m %s` to "
                  "simulate it",
                  j->machine->name, name);
        return false;
    }
    machine_free(j->machine);
    struct machine *host = machine_host(&im->diags);
    if (!host) {
        j->machine = NULL;
        return false;
    }
    j->machine = machine_join(name, host->name, &set, &im->diags);
    machine_free(host);
    return j->machine != NULL;
}

bool has_suffix(const char *s, const char *suffix) {
    size_t n = s ? strlen(s) : 0, k = strlen(suffix);
    return n > k && strcmp(s + n - k, suffix) == 0;
}

/* The kernel that was asked for, or the first. */
static const struct kernel *pick_kernel(isamap *im, const struct job *j, struct kernel **kernel,
                                        int n) {
    if (n == 0)
        diag_line(&im->diags, j->path, 1, 1,
                  "no kernel in the file; expected `kernel NAME(...) { ... }`");
    if (n == 0 || !im->option.kernel) return n ? kernel[0] : NULL;
    for (int i = 0; i < n; i++)
        if (strcmp(kernel[i]->name, im->option.kernel) == 0) return kernel[i];
    struct names known = {0};
    for (int i = 0; i < n; i++) names_add(&im->diags.arena, &known, kernel[i]->name);
    diag_line(&im->diags, j->path, 1, 1, "no kernel '%s' in the file, expected %s",
              im->option.kernel, names_listed(&im->diags.arena, im->option.kernel, &known));
    return NULL;
}

static bool no_parameter(isamap *im, struct job *j, const struct kernel *k, const char *name) {
    struct names known = {0};
    for (int i = 0; i < k->nparams; i++) names_add(&j->arena, &known, k->param[i].name);
    diag_at(&im->diags, k->source, k->at, "kernel '%s' has no parameter '%s', expected %s", k->name,
            name, names_listed(&j->arena, name, &known));
    return false;
}

/* A file that is something else by its suffix, or a folder. */
static bool allows(const isamap *im, enum rewrite_effect e) {
    return strcmp(im->option.allow, rewrite_effect_name[e]) == 0;
}

static bool is_other(isamap *im, const char *path) {
    static const struct {
        const char *suffix, *what;
    } others[] = {{".xml", "a machine, which -m names"},
                  {".sched", "a schedule, which `isamap check` reads"},
                  {".csv", "a suite, which `isamap bench` reads"},
                  {".bin", "an image, which `isamap show` reads"},
                  {".npy", "an array, which --input names"},
                  {".so", "a library: compiled already"}};
    struct stat st;
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    const char *what = "another file";
    if (stat(path, &st) != 0) return false;
    if (S_ISDIR(st.st_mode))
        what = "a folder";
    else if (!dot || has_suffix(path, ".isam") || has_suffix(path, ".onnx"))
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others && dot; i++)
        if (strcmp(dot, others[i].suffix) == 0) what = others[i].what;
    diag_line(&im->diags, path, 0, 0, "'%s' is %s, expected a program (.isam or .onnx)", path,
              what);
    return true;
}

static const struct onnx_custom *custom_operators(const isamap *im, struct arena *a) {
    const struct pairs *p = &im->option.op;
    struct onnx_custom *custom = arena_array(a, (size_t)p->n + 1, sizeof *custom);
    for (int i = 0; i < p->n; i++) custom[i] = (struct onnx_custom){p->at[i].name, p->at[i].value};
    return custom;
}

bool job_program(isamap *im, struct job *j) {
    struct bindings given;
    if (is_other(im, j->path)) return false;
    if (!pairs_bindings(im, &im->option.define, "-D", &j->arena, &given)) return false;
    if (has_suffix(j->path, ".onnx")) {
        struct bindings dims;
        if (!shape_bindings(im, &j->arena, &given, &dims)) return false;
        if (im->option.compare && !npz_read(im->option.compare, &j->expected, &im->diags))
            return false;
        struct onnx_options options = {.exact =
                                           im->option.allow && !allows(im, REWRITE_REQUANTISES),
                                       .keep = j->expected.name,
                                       .nkeep = j->expected.n,
                                       .custom = custom_operators(im, &j->arena),
                                       .ncustom = im->option.op.n};
        j->model = onnx_load(j->path, &dims, &options, &im->diags);
        if (!j->model) return false;
        j->program = j->model->program;
    } else if (im->option.compare) {
        diag_line(&im->diags, "--compare", 0, 0, "'%s' is a kernel: tensors are compared of models",
                  j->path);
        return false;
    } else if (im->option.op.n) {
        diag_line(&im->diags, "--op", 0, 0, "'%s' is a kernel: operators are of models", j->path);
        return false;
    } else if (im->option.shape.n) {
        diag_line(&im->diags, "--shape", 0, 0,
                  "'%s' is a kernel, which -D gives its sizes: shapes are for models", j->path);
        return false;
    } else {
        struct source *source = arena_alloc(&j->arena, sizeof *source);
        *source = (struct source){.file = j->path, .line0 = 1, .col0 = 1};
        source->text = file_read(&j->arena, j->path, 16u << 20, &source->length, &im->diags);
        if (!source->text) return false;
        struct kernel **kernel;
        int n = kernel_parse(&j->arena, source, &kernel, &im->diags);
        const struct kernel *k = n < 0 ? NULL : pick_kernel(im, j, kernel, n);
        if (!k) return false;
        for (int i = 0; i < given.n; i++)
            if (kernel_param_index(k, given.at[i].name) < 0)
                return no_parameter(im, j, k, given.at[i].name);
        j->own_program = program_bind_sizes(k, &given, NULL, &im->diags);
        if (!j->own_program || !program_verify(j->own_program, &im->diags)) return false;
        j->program = j->own_program;
    }
    j->name = j->program->name;
    return true;
}

bool job_fixed(isamap *im, struct job *j) {
    if (!j->program->nsizes) return true;
    const char *name = j->program->size[0].name;
    diag_line(&im->diags, j->path, 0, 0, "'%s' is open; give it a value, for instance -D %s=16",
              name, name);
    return false;
}

bool job_sizes(isamap *im, struct job *j) {
    const struct program *p = j->program;
    struct bindings set;
    if (!pairs_bindings(im, &im->option.size, "--size", &j->arena, &set)) return false;
    for (int i = 0; i < set.n; i++) {
        bool known = false;
        for (int k = 0; k < p->nsizes; k++) known |= strcmp(p->size[k].name, set.at[i].name) == 0;
        if (known) continue;
        struct names open = {0};
        for (int k = 0; k < p->nsizes; k++) names_add(&j->arena, &open, p->size[k].name);
        diag_line(&im->diags, "--size", 0, 0, "'%s' leaves no size '%s' open, expected %s", j->name,
                  set.at[i].name, names_listed(&j->arena, set.at[i].name, &open));
        return false;
    }
    if (!p->nsizes) return true;
    j->size = arena_array(&j->arena, (size_t)p->nsizes, sizeof *j->size);
    for (int k = 0; k < p->nsizes; k++) {
        const struct size *s = &p->size[k];
        bool given = im->option.steps > 0; /* of a stream: one by one, if nothing else is said */
        j->size[k] = 1;
        for (int i = 0; i < set.n; i++)
            if (strcmp(set.at[i].name, s->name) == 0) {
                j->size[k] = set.at[i].value;
                given = true;
            }
        if (given && size_within(s, j->size[k]) == j->size[k]) continue;
        if (given)
            diag_line(&im->diags, "--size", 0, 0,
                      "'%s' is %" PRId64 ", expected %" PRId64 " to %" PRId64, s->name, j->size[k],
                      s->lo, s->hi);
        else
            diag_line(&im->diags, j->path, 0, 0,
                      "'%s' is known only when the program runs; expected --size %s=%" PRId64
                      ", or -D to compile for one value",
                      s->name, s->name, s->hi < 16 ? s->hi : 16);
        return false;
    }
    j->program = j->sized = program_at(p, j->size);
    return true;
}

static struct decider *open_decider(isamap *im) {
    const char *file = im->option.decisions;
    if (file && !im->option.approach) return decider_replay(file, &im->diags);
    const char *name = im->option.approach ? im->option.approach : "heuristic";
    for (int i = 0; approaches[i]; i++)
        if (strcmp(approaches[i]->name, name) == 0)
            return file ? decider_guide(file, approaches[i], im->option.seed, &im->diags)
                        : decider_open(approaches[i], im->option.seed);
    struct names known = {0};
    for (int i = 0; approaches[i]; i++) names_add(&im->diags.arena, &known, approaches[i]->name);
    diag_line(&im->diags, "--approach", 0, 0, "no approach '%s', expected %s", name,
              names_listed(&im->diags.arena, name, &known));
    return NULL;
}

bool job_check_chain(isamap *im, struct job *j) {
    double start = now_seconds();
    text_free(&j->chain_steps);
    bool good = chain_check(j->schedule, &j->chain, &j->chain_steps, &im->diags);
    j->chain_seconds = now_seconds() - start;
    return good;
}

bool job_check(isamap *im, struct job *j) {
    double start = now_seconds();
    doing(im, "checking");
    text_free(&j->proof_reason);
    j->proof = schedule_prove(j->schedule, 0, &j->proof_sampled, &j->proof_reason, &im->diags);
    j->proof_seconds = now_seconds() - start;
    return job_check_chain(im, j) && j->proof != PROOF_REFUSED;
}

static void print_pairs(const char *option, const struct pairs *p, struct text *out) {
    for (int i = 0; i < p->n; i++)
        text_printf(out, " %s %s=%s", option, p->at[i].name, p->at[i].value);
}

/* What makes the same schedule once more: the words of the command that decide it. */
static void print_command(const isamap *im, const struct job *j, struct text *out) {
    const struct options *o = &im->option;
    const char *const word[][2] = {{"--kernel", o->kernel},       {"--approach", o->approach},
                                   {"--rewrite", o->rewrite},     {"--allow", o->allow},
                                   {"--decisions", o->decisions}, {"--target", o->target}};
    text_printf(out, "isamap compile %s -m %s", j->path,
                o->machine ? o->machine : j->machine->name);
    print_pairs("-D", &o->define, out);
    print_pairs("--shape", &o->shape, out);
    print_pairs("--param", &o->param, out);
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (word[i][1]) text_printf(out, " %s %s", word[i][0], word[i][1]);
    if (o->contexts) text_printf(out, " --contexts %d", o->contexts);
    text_printf(out, " --seed %" PRIu64 " --threads %d -o x.sched", o->seed, o->threads);
}

static bool refused(isamap *im, const struct job *j) {
    struct text command = {0};
    print_command(im, j, &command);
    diag_line(&im->diags, j->path, 0, 0,
              "the verifier refuses the schedule of '%s' on '%s', which is a defect of isamap; "
              "report it with the program and this command: %s",
              j->name, j->machine->name, command.at);
    text_free(&command);
    im->defect = true;
    return false;
}

bool job_prove(isamap *im, struct job *j) {
    return im->option.no_check || job_check(im, j) || refused(im, j);
}

static double simulated_cycles(const struct schedule *s, double most, int64_t *steps) {
    struct sim_options options = {
        .no_values = true, .trusted = true, .steps = *steps, .most = most};
    struct sim_result r;
    struct diags diags;
    diags_init(&diags);
    bool ok = sim_run(s, NULL, &options, &r, &diags);
    double cycles = ok ? r.cycles : r.beyond ? INFINITY : -1;
    *steps = r.steps;
    sim_result_free(&r);
    diags_free(&diags);
    return cycles;
}

/* --allow: what rewrites may do to floats. */
static bool allowed_effect(isamap *im, enum rewrite_effect *out) {
    *out = REWRITE_REORDERS;
    if (!im->option.allow) return true;
    for (int e = 0; e < REWRITE_EFFECTS; e++)
        if (allows(im, (enum rewrite_effect)e)) {
            *out = (enum rewrite_effect)e;
            return true;
        }
    diag_line(&im->diags, "--allow", 0, 0, "no effect '%s', expected %s", im->option.allow,
              names_near(&im->diags.arena, im->option.allow, rewrite_effect_name, REWRITE_EFFECTS));
    return false;
}

/* Beside a device a model's requantisers are scaled by integers where that costs less. */
static void fix_points(isamap *im, struct job *j, enum rewrite_effect floats) {
    if (!j->model || j->fixed) return;
    int changed;
    struct decider *quiet = decider_open(approaches[0], im->option.seed);
    j->fixed = mapper_fixed_point(j->program, j->machine, j->model->data, floats, quiet, &changed);
    decider_close(quiet);
    if (!j->fixed) return;
    j->program = j->fixed;
    diag_warn(&im->diags, j->path, 0, 0,
              "%d results are scaled by integers beside '%s', each at most one step from its "
              "scaling in floats; --allow exact leaves floats",
              changed, j->machine->name);
}

bool job_adapt(isamap *im, struct job *j, enum rewrite_effect *floats) {
    if (!allowed_effect(im, floats)) return false;
    if (j->model && !j->shifted && (j->shifted = mapper_signed(j->program, j->machine)))
        j->program = j->shifted;
    if (!im->option.allow ? j->model && j->model->requantised : allows(im, REWRITE_REQUANTISES))
        fix_points(im, j, *floats);
    return true;
}

/* What is covered: the program, rewritten as the options say; NULL after reporting. */
static const struct program *job_begin(isamap *im, struct job *j, enum rewrite_effect *floats) {
    j->decider = open_decider(im);
    if (!j->decider || !job_adapt(im, j, floats)) return NULL;
    if (!im->option.rewrite) return j->program;
    return j->rewritten = mapper_rewrite(j->program, j->machine, im->option.rewrite, &im->diags);
}

bool job_cover(isamap *im, struct job *j) {
    enum rewrite_effect floats;
    const struct program *p = job_begin(im, j, &floats);
    if (p)
        j->cover = mapper_cover_allowing(p, j->machine, floats, NULL, NULL, j->decider, &im->diags);
    return j->cover != NULL;
}

/* --rewrite: the chain begins with the program as it was written. */
static void note_rewrites(const isamap *im, struct job *j) {
    struct reason r = mapper_rewrite_reason(im->option.rewrite);
    chain_prefix(j->schedule->chain, j->program, &r);
}

/* Dimensions that are one while the program is mapped and scheduled. */
static void note_collapse(struct job *j, const struct program *p) {
    struct reason r = {.by = "collapse", .laws = LAWS_EXACT, .sampling = SAMPLE_VALUES};
    chain_prefix(j->schedule->chain, p, &r);
}

static void say_doing(void *user, const char *phase) {
    doing(user, phase);
}

/* The pipeline: program → cover → schedule. */
static bool compile_anew(isamap *im, struct job *j, const struct program *p,
                         enum rewrite_effect floats) {
    struct program *flat = program_collapse(p);
    double start = now_seconds();
    struct scheduler_options options = {.threads = im->option.threads,
                                        .contexts = im->option.contexts,
                                        .plain = im->option.plain,
                                        .strict = im->option.strict,
                                        .simulate = simulated_cycles,
                                        .doing = say_doing,
                                        .user = im,
                                        .explain = im->option.explain ? &j->explain : NULL};
    j->schedule = scheduler_compile(flat ? flat : p, j->machine, floats, j->decider, &options,
                                    &j->cover, &im->diags);
    if (j->schedule && flat) note_collapse(j, p);
    if (flat) program_free(flat);
    if (!j->schedule) return false;
    if (im->diags.errors) return im->unmapped = im->option.strict, false;
    if (j->rewritten) note_rewrites(im, j);
    if (decider_failed(j->decider, &im->diags)) return false;
    j->compile_seconds = now_seconds() - start;
    return job_prove(im, j);
}

static bool compile_or_find(isamap *im, struct job *j, const struct program *p,
                            enum rewrite_effect floats) {
    struct text key = {0};
    int before = im->diags.n;
    const struct cache *cache = j->cache = cached_open(im, j, &key);
    bool good = cache && cached_find(im, j, cache, &key);
    if (!good && !j->schedule) {
        good = compile_anew(im, j, p, floats);
        if (good && cache) cached_keep(im, j, before, cache, &key);
    }
    text_free(&key);
    return good;
}

bool job_compile(isamap *im, struct job *j) {
    enum rewrite_effect floats;
    const struct program *p = job_begin(im, j, &floats);
    return p && compile_or_find(im, j, p, floats) &&
           (!im->option.record || decider_save(j->decider, im->option.record, &im->diags));
}

const void *weights_of(const struct job *j, int buffer) {
    return j->model && buffer < j->model->program->nbuffers ? j->model->data[buffer] : NULL;
}
