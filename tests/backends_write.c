/* Files that backends write, and what they say when they cannot. */
#include "backends/backend.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <unistd.h>
#include <cmocka.h>

#define DATA SOURCE_DIR "/tests/data/"

struct fixture {
    struct diags diags;
    struct arena arena;
    struct machine *machine;
    struct schedule *schedule;
    char folder[64];
};

static struct fixture *open_fixture(const char *machine, const char *schedule) {
    struct fixture *f = calloc(1, sizeof *f);
    diags_init(&f->diags);
    arena_init(&f->arena);
    strcpy(f->folder, "/tmp/isamap-test.XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->machine = machine_load(machine, NULL, &f->diags);
    if (!f->machine) diags_print(&f->diags, stderr);
    assert_non_null(f->machine);
    struct source *s = arena_alloc(&f->arena, sizeof *s);
    *s = (struct source){.file = schedule, .line0 = 1, .col0 = 1};
    s->text = file_read(&f->arena, schedule, 1 << 20, &s->length, &f->diags);
    assert_non_null(s->text);
    f->schedule = schedule_parse(f->machine, s, &f->diags);
    if (!f->schedule) diags_print(&f->diags, stderr);
    assert_non_null(f->schedule);
    return f;
}

static void close_fixture(struct fixture *f) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", f->folder);
    assert_int_equal(system(command), 0);
    schedule_free(f->schedule);
    machine_free(f->machine);
    arena_free(&f->arena);
    diags_free(&f->diags);
    free(f);
}

static const char *inside(struct fixture *f, const char *name) {
    return arena_printf(&f->arena, "%s/%s", f->folder, name);
}

static bool mentions(const struct diags *d, const char *text) {
    for (int i = 0; i < d->n; i++)
        if (strstr(d->at[i].text, text)) return true;
    diags_print(d, stderr);
    return false;
}

static void write_program(struct fixture *f) {
    static const char text[] =
        "#include <stdio.h>\n#include <stdlib.h>\n#include \"prepare.h\"\n"
        "int main(void) {\n"
        "  float a[7], b[35], c[5], s[5] = {0};\n"
        "  for (int i = 0; i < 7; i++) a[i] = (float)i;\n"
        "  for (int i = 0; i < 35; i++) b[i] = (float)(i % 5 + 1);\n"
        "  struct prepare_args args = {.A = a, .B = b, .C = c, .S = s, .threads = 1};\n"
        "  args.prepared = aligned_alloc(64, prepare_prepared_bytes() + 64);\n"
        "  void *work = aligned_alloc(64, prepare_workspace_bytes() + 64);\n"
        "  if (prepare_prepare(&args) || prepare_run(&args, work) || prepare_run(&args, work)) "
        "return 1;\n"
        "  for (int j = 0; j < 5; j++) printf(\"%g %g\\n\", c[j], s[j]);\n"
        "  return 0;\n}\n";
    FILE *out = fopen(inside(f, "main.c"), "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

/* The others speak of devices that no schedule here is for (tests/cuda.sh). */
static bool on_processors(const struct backend *b) {
    return strcmp(b->name, "cuda") != 0;
}

/* The header and the library serve a program that knows nothing of isamap. */
static void check_library(const struct backend *b, struct fixture *f) {
    assert_true(b->write(f->schedule, inside(f, "kernel.so"), NULL, &f->diags));
    write_program(f);
    const char *command = arena_printf(
        &f->arena,
        "cd %s && cc -std=c11 -Wall -Wextra -Werror -o main main.c ./kernel.so && ./main",
        f->folder);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    for (int j = 0; j < 5; j++) {
        double c, s;
        assert_int_equal(fscanf(p, "%lf %lf", &c, &s), 2);
        assert_true(c == 21 * (j + 1) + 1);
        assert_true(s == 2 * 21 * (j + 1));
    }
    assert_int_equal(pclose(p), 0);
}

/* Weights that are known when code is written: `weights` says where the program gets them; every
 * wrong argument has a status. */
static const char *const weights_program =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include \"prepare.h\"\n"
    "#define WANT(x, status) if ((x) != status) return printf(\"%s\\n\", #x), 1\n"
    "int main(void) {\n"
    "  float a[7], c[5], s[5] = {0};\n"
    "  for (int i = 0; i < 7; i++) a[i] = (float)i;\n"
    "  struct prepare_args args = {.A_0 = a, .C = c, .S = s, .threads = 1};\n"
    "  char *room = aligned_alloc(64, prepare_prepared_bytes() + 128);\n"
    "  char *work = aligned_alloc(64, prepare_workspace_bytes() + 128);\n"
    "  memset(room, 0, 64);\n"
    "  WANT(prepare_check(), 0);\n"
    "  WANT(prepare_matches(ISAMAP_INTERFACE + 1, 0), 5);\n"
    "  WANT(prepare_interface(), ISAMAP_INTERFACE);\n"
    "  WANT(strcmp(prepare_argument(0)->name, \"A/0\"), 0);\n"
    "  WANT(strcmp(prepare_argument(2)->role, \"inout\"), 0);\n"
    "  WANT(prepare_argument(1)->extent[0], 5);\n"
    "  WANT(prepare_argument(1)->bytes, 20);\n"
    "  WANT(!prepare_argument(3), 1);\n"
    "  WANT(!prepare_argument(-1), 1);\n"
    "  WANT(strcmp(prepare_message(0), \"done\"), 0);\n"
    "  WANT(strcmp(prepare_message(77), \"unknown\"), 0);\n"
    "  WANT(prepare_prepare(0), 2);\n"
    "  WANT(prepare_prepare(&args), 2);\n"
    "  args.prepared = room + 4;\n"
    "  WANT(prepare_prepare(&args), 2);\n"
    "  args.prepared = room;\n"
    "#ifdef WEIGHTS\n"
    "  char *w = aligned_alloc(64, 4096);\n"
    "  FILE *f = fopen(\"kernel.weights\", \"rb\");\n"
    "  WANT(!f || fread(w, 1, 4096, f) < 64, 0);\n"
    "  WANT(prepare_prepare(&args), 2);\n"
    "  args.weights = w;\n"
    "  w[8]++;\n"
    "  WANT(prepare_prepare(&args), 4);\n"
    "  w[8]--;\n"
    "#endif\n"
    "  WANT(prepare_run(&args, work), 3);\n"
    "  WANT(prepare_prepare(&args), 0);\n"
    "  args.threads = -1;\n"
    "  WANT(prepare_run(&args, work), 2);\n"
    "  args.threads = 1025;\n"
    "  WANT(prepare_run(&args, work), 2);\n"
    "  args.threads = 1;\n"
    "  WANT(prepare_run(0, work), 2);\n"
    "  WANT(prepare_run(&args, 0), 2);\n"
    "  WANT(prepare_run(&args, work + 8), 2);\n"
    "  args.S = 0;\n"
    "  WANT(prepare_run(&args, work), 2);\n"
    "  args.S = s;\n"
    "  WANT(prepare_run(&args, work), 0);\n"
    "  for (int j = 0; j < 5; j++) WANT(c[j], (float)(21 * (j + 1) + 1));\n"
    "  return 0;\n}\n";

static void check_weights(const struct backend *b, enum weights weights) {
    struct fixture *f =
        open_fixture(DATA "machines/backends/reg4.xml", DATA "backends/prepare.sched");
    const struct program *p = f->schedule->program;
    float values[35];
    const void **data = arena_array(&f->arena, (size_t)p->nbuffers, sizeof *data);
    const char **title = arena_array(&f->arena, (size_t)p->nbuffers, sizeof *title);
    for (int i = 0; i < 35; i++) values[i] = (float)(i % 5 + 1);
    data[program_buffer(p, "B")] = values;
    title[program_buffer(p, "A")] = "A/0";
    const struct backend_options options = {.weights = weights, .data = data, .title = title};
    bool good = b->write(f->schedule, inside(f, "kernel.so"), &options, &f->diags);
    diags_print(&f->diags, stderr);
    assert_true(good);
    assert_int_equal(access(inside(f, "kernel.weights"), R_OK), weights == WEIGHTS_FILE ? 0 : -1);
    FILE *out = fopen(inside(f, "main.c"), "w");
    fputs(weights_program, out);
    fclose(out);
    const char *command = arena_printf(
        &f->arena,
        "cd %s && cc -std=c11 -Wall -Wextra -Werror %s -o main main.c ./kernel.so && ./main",
        f->folder, weights == WEIGHTS_FILE ? "-DWEIGHTS" : "");
    assert_int_equal(system(command), 0);
    assert_false(b->write(f->schedule, inside(f, !strcmp(b->name, "c") ? "x.c" : "x.s"),
                          &(struct backend_options){.weights = WEIGHTS_EMBED, .data = data},
                          &f->diags));
    assert_true(mentions(&f->diags, "expected --weights file"));
    close_fixture(f);
}

static void test_weights(void **state) {
    (void)state;
    for (int i = 0; backends[i]; i++) {
        if (!on_processors(backends[i])) continue;
        check_weights(backends[i], WEIGHTS_EMBED);
        check_weights(backends[i], WEIGHTS_FILE);
    }
}

static void test_library(void **state) {
    (void)state;
    for (int i = 0; backends[i]; i++) {
        if (!on_processors(backends[i])) continue;
        struct fixture *f =
            open_fixture(DATA "machines/backends/reg4.xml", DATA "backends/prepare.sched");
        assert_true(backends[i]->accepts(f->schedule));
        check_library(backends[i], f);
        close_fixture(f);
    }
}

#if defined __x86_64__ && defined SYS_arch_prctl
/* A library whose code needs state that the kernel gives only on request asks for it itself, and
 * says when it is refused. Component 18 is the tiles of AMX; 60 does not exist. */
static void check_permission(const struct backend *b, int component) {
    struct fixture *f =
        open_fixture(DATA "machines/backends/reg4.xml", DATA "backends/prepare.sched");
    bool given = syscall(SYS_arch_prctl, 0x1023, component) == 0;
    struct feature *feature = arena_array(&f->arena, 1, sizeof *feature);
    *feature = (struct feature){
        .id = "state", .permit = arena_printf(&f->arena, "arch_prctl 0x1023 %d", component)};
    assert_int_equal(f->machine->nfeatures, 0);
    f->machine->feature = feature;
    f->machine->nfeatures = 1;
    f->machine->needs_features = f->machine->code_features = 1;
    if (given) {
        check_library(b, f);
    } else {
        assert_true(b->write(f->schedule, inside(f, "kernel.so"), NULL, &f->diags));
        void *library = dlopen(inside(f, "kernel.so"), RTLD_NOW);
        assert_non_null(library);
        int (*prepare)(const void *);
        void *entry = dlsym(library, "prepare_prepare"), *room = aligned_alloc(64, 4096);
        void *args[8] = {room, room, room, room, room}; /* four arrays, the prepared block */
        memcpy(&prepare, &entry, sizeof entry);
        assert_int_equal(prepare(args), 1);
        dlclose(library);
        free(room);
    }
    close_fixture(f);
}

static void test_permission(void **state) {
    (void)state;
    for (int i = 0; backends[i]; i++) {
        if (!on_processors(backends[i])) continue;
        check_permission(backends[i], 18);
        check_permission(backends[i], 60);
    }
}
#else
static void test_permission(void **state) {
    (void)state;
    skip();
}
#endif

static void test_every_suffix(void **state) {
    (void)state;
    struct fixture *f =
        open_fixture(DATA "machines/backends/reg4.xml", DATA "backends/parallel.sched");
    for (int i = 0; backends[i]; i++) {
        if (!on_processors(backends[i])) continue;
        for (int k = 0; backends[i]->suffixes[k]; k++) {
            struct stat info;
            const char *path = inside(f, arena_printf(&f->arena, "x%s", backends[i]->suffixes[k]));
            unlink(path);
            if (!backends[i]->write(f->schedule, path, NULL, &f->diags))
                diags_print(&f->diags, stderr);
            assert_int_equal(stat(path, &info), 0);
            assert_true(info.st_size > 100);
        }
    }
    assert_null(backend_find(f->schedule, ".bin", &f->diags));
    assert_true(mentions(&f->diags, "writes '.bin'"));
    assert_non_null(backend_find(f->schedule, ".so", &f->diags));
    close_fixture(f);
}

static void test_kept_text(void **state) {
    (void)state;
    struct fixture *f = open_fixture(DATA "machines/backends/reg4.xml", DATA "backends/gemm.sched");
    const struct backend_options options = {.keep = f->folder};
    for (int i = 0; backends[i]; i++) {
        if (!on_processors(backends[i])) continue;
        struct executable *e = backends[i]->load(f->schedule, &options, &f->diags);
        assert_non_null(e);
        executable_free(e);
    }
    assert_int_equal(access(inside(f, "gemm.c"), R_OK), 0);
#if ISAMAP_WITH_LLVM
    assert_int_equal(access(inside(f, "gemm.ll"), R_OK), 0);
#endif
    assert_null(backends[0]->load(f->schedule, &(struct backend_options){.keep = "/nowhere/at/all"},
                                  &f->diags));
    assert_true(f->diags.errors > 0);
    close_fixture(f);
}

static const struct backend *named(const char *name) {
    for (int i = 0; backends[i]; i++)
        if (!strcmp(backends[i]->name, name)) return backends[i];
    return NULL;
}

/* The message has the line of the emit's text in the machine file. */
static void test_bad_emits(void **state) {
    (void)state;
    struct fixture *f = open_fixture(DATA "backends/bad.xml", DATA "backends/bad.sched");
    assert_null(named("c")->load(f->schedule, NULL, &f->diags));
    assert_true(mentions(&f->diags, "bad.xml:27"));
    if (named("cpu")) {
        assert_null(named("cpu")->load(f->schedule, NULL, &f->diags));
        assert_true(mentions(&f->diags, "use of undefined value '%D'"));
        assert_int_equal(f->diags.at[f->diags.n - 1].line, 29);
    }
    close_fixture(f);
}

static void test_bad_expression(void **state) {
    (void)state;
    struct fixture *f = open_fixture(DATA "backends/bad.xml", DATA "backends/badname.sched");
    if (named("cpu")) {
        assert_null(named("cpu")->load(f->schedule, NULL, &f->diags));
        assert_true(mentions(&f->diags, "'addr' in '${4 + 0 * addr(S)}' has no value"));
        assert_int_equal(f->diags.at[0].line, 12);
    }
    close_fixture(f);
}

static void test_moving_register(void **state) {
    (void)state;
    struct fixture *f =
        open_fixture(DATA "machines/backends/reg4.xml", DATA "backends/moving.sched");
    struct executable *e = named("c")->load(f->schedule, NULL, &f->diags);
    assert_non_null(e);
    executable_free(e);
    if (named("cpu")) {
        assert_null(named("cpu")->load(f->schedule, NULL, &f->diags));
        assert_true(mentions(&f->diags, "its place in 'reg' is not constant"));
    }
    close_fixture(f);
}

static void test_no_compiler(void **state) {
    (void)state;
    struct fixture *f = open_fixture(DATA "machines/backends/reg4.xml", DATA "backends/gemm.sched");
    setenv("CC", "a-compiler-that-nobody-has", 1);
    assert_null(named("c")->load(f->schedule, NULL, &f->diags));
    assert_true(mentions(&f->diags, "cannot run the compiler 'a-compiler-that-nobody-has'"));
    unsetenv("CC");
    close_fixture(f);
}

/* A feature that is not there is an error before anything runs; what would end the code generator
 * is an error too. */
static void test_absent_features(void **state) {
    (void)state;
#if ISAMAP_WITH_LLVM
    struct fixture *f = open_fixture(DATA "backends/absent.xml", DATA "backends/honest.sched");
    assert_null(named("cpu")->load(f->schedule, NULL, &f->diags));
    assert_true(mentions(&f->diags, "'never'"));
    assert_true(named("cpu")->write(f->schedule, inside(f, "x.s"), NULL, &f->diags));
    close_fixture(f);
    f = open_fixture(DATA "backends/absent.xml", DATA "backends/silent.sched");
    assert_false(named("cpu")->write(f->schedule, inside(f, "x.o"), NULL, &f->diags));
    assert_true(f->diags.errors > 0);
    assert_true(named("cpu")->write(f->schedule, inside(f, "x.ll"), NULL, &f->diags));
    close_fixture(f);
#endif
}

/* Neither backend knows both instructions: the message names what each lacks. */
static void test_nobody_accepts(void **state) {
    (void)state;
    struct fixture *f = open_fixture(DATA "backends/absent.xml", DATA "backends/honest.sched");
    struct emit *e = (struct emit *)instr_emit(
        &f->machine->instr[machine_instr(f->machine, "honest")], LANGUAGE_LLVM);
    e->language = LANGUAGE_BITS;
    assert_null(backend_find(f->schedule, NULL, &f->diags));
    assert_true(mentions(&f->diags, "'honest' has no emit as llvm and 'honest' has none as c"));
    close_fixture(f);
}

static void test_no_place_to_write(void **state) {
    (void)state;
    struct fixture *f = open_fixture(DATA "machines/backends/reg4.xml", DATA "backends/gemm.sched");
    for (int i = 0; backends[i]; i++) {
        if (!on_processors(backends[i])) continue;
        int errors = f->diags.errors;
        for (int k = 0; backends[i]->suffixes[k]; k++) {
            const char *path =
                arena_printf(&f->arena, "%s/missing/x%s", f->folder, backends[i]->suffixes[k]);
            assert_false(backends[i]->write(f->schedule, path, NULL, &f->diags));
        }
        assert_true(f->diags.errors > errors);
    }
    close_fixture(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permission),        cmocka_unit_test(test_library),
        cmocka_unit_test(test_every_suffix),      cmocka_unit_test(test_kept_text),
        cmocka_unit_test(test_bad_emits),         cmocka_unit_test(test_bad_expression),
        cmocka_unit_test(test_moving_register),   cmocka_unit_test(test_absent_features),
        cmocka_unit_test(test_nobody_accepts),    cmocka_unit_test(test_no_compiler),
        cmocka_unit_test(test_no_place_to_write), cmocka_unit_test(test_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
