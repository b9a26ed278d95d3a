/* What each command says with each of its options: status, result, messages and the file that is
 * written, in words or as JSON, as a line for each option with a hash over its values. Kept in
 * tests/data/golden/all_said.txt. ISAMAP_FIGURES=FOLDER keeps the texts that are hashed. */
#include "command/options.h"
#include "tests/figures.h"
#include "tests/sample.h"

#include <ctype.h>

static const struct call {
    enum command_id command;
    const char *file, *options, *out; /* out: suffix of what is written, or NULL */
} calls[] = {
    {COMMAND_CHECK, "examples/i8/gmm.isam", "machine=edge16 define=M=20", NULL},
    {COMMAND_CHECK, "machines/gemmini.xml", "", NULL},
    {COMMAND_CHECK, "examples/digits/digits.onnx", "machine=cpu-scalar define=N=1", NULL},
    {COMMAND_MAP, "examples/i8/gmm.isam", "machine=edge16 define=M=20 define=N=24", NULL},
    {COMMAND_MAP, "examples/f32/gated.isam", "machine=cpu-avx2 define=T=9 define=D=24", NULL},
    {COMMAND_COMPILE, "examples/i8/gmm.isam", "machine=gemmini define=M=32 define=N=16 define=K=32",
     ".bin"},
    {COMMAND_COMPILE, "examples/f32/softmax.isam", "machine=cpu-scalar define=M=4 define=N=9",
     ".c"},
    {COMMAND_COMPILE, "examples/digits/digits-int8.onnx", "machine=cpu-avx2 define=N=1", ".sched"},
    {COMMAND_RUN, "examples/f32/gmm.isam", "machine=cpu-avx2 define=M=20 define=N=24 define=K=16",
     NULL},
    {COMMAND_RUN, "examples/f32/gru.isam", "machine=cpu-avx2 define=H=8 size=T=3", NULL},
    {COMMAND_SIM, "examples/i8/gmm.isam", "machine=edge16 define=M=20 define=N=24 define=K=16",
     NULL},
    {COMMAND_SIM, "examples/f32/softmax.isam", "machine=edge16 define=M=4 define=N=9", NULL},
    {COMMAND_SIM, "examples/i8/c1d.isam", "machine=vdla define=P=9 define=C=5 define=K=3", NULL},
    {COMMAND_SWEEP, "examples/i8/gmm.isam",
     "machine=edge16 define=M=20 define=N=24 define=K=16 set=SPAD=32768", ".csv"},
    {COMMAND_BENCH, "bench/smoke_i8.csv", "machine=edge16 runs=1 only=product", NULL},
    {COMMAND_SHOW, "examples/i8/gmm.isam", "machine=edge16 define=M=20 define=N=24", ".svg"},
    {COMMAND_SHOW, "examples/i8/residual.isam", "", ".isam"},
    {COMMAND_SHOW, "machines/edge16.xml", "", ".sv"},
    {COMMAND_NEW_MACHINE, "mine", "", ".xml"},
};

/* Of options that take anything. $ stands for the test's folder. */
static const struct {
    const char *option, *value[4];
} values[] = {
    {"machine", {"gemmini", "nothing"}},
    {"define", {"M=3", "M=0", "Q=3", "M=x"}},
    {"shape", {"image=1,1,8,8", "A=2"}},
    {"op", {"a.B=examples/f32/softmax.isam", "a.B=nothing.isam"}},
    {"kernel", {"gmm", "nothing"}},
    {"param", {"SPAD=32K", "T=32", "T=0", "NO=1"}},
    {"set", {"SPAD=64K", "SPAD=16K..32K", "NO=1..2"}},
    {"size", {"T=1", "T=99999", "M=1"}},
    {"input", {"A=tests/data/api/none.npy", "Q=tests/data/api/none.npy"}},
    {"output-dir", {"$", "$/none/none"}},
    {"seed", {"7"}},
    {"threads", {"2"}},
    {"rtol", {"0.5", "0"}},
    {"record", {"$/recorded"}},
    {"decisions", {"$/recorded", "$/nothing"}},
    {"contexts", {"1", "3"}},
    {"rewrite", {"nothing", "constants"}},
    {"state", {"A=C", "x=y"}},
    {"compare", {"nothing.npz"}},
    {"trace", {"$/trace"}},
    {"latencies", {"3..9"}},
    {"vs", {"none", "nothing"}},
    {"only", {"*", "nothing"}},
    {"batch", {"2"}},
    {"log", {"$/log"}},
};

/* They take long, say only times, or depend on the computer. */
static const char *const left_out[] = {"rtl", "profile", "profile-trace", "steps",  "runs", "json",
                                       "out", "help",    "execute",       "target", NULL};

static const char *value_of(const struct option *o, int k) {
    if (o->kind == OPTION_SWITCH) return k ? NULL : "";
    if (o->word) return o->word(k);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(values[i].option, o->name) == 0) return k < 4 ? values[i].value[k] : NULL;
    fail_msg("no value for --%s", o->name);
    return NULL;
}

static bool is_left_out(const struct option *o) {
    for (int k = 0; left_out[k]; k++)
        if (strcmp(left_out[k], o->name) == 0) return true;
    return false;
}

/* ---- what is said ---- */

/* Times are #, and so is each number with a point where `rough`; blanks are one. */
static void append_plain(struct text *t, const char *from, bool rough) {
    static const char *const units[] = {" s", " ms", " G"};
    for (const char *at = from; *at;) {
        size_t n = isdigit((unsigned char)*at) && (at == from || !isalpha((unsigned char)at[-1]))
                       ? strspn(at, "0123456789.e+-")
                       : 0;
        bool is_time = rough && n && memchr(at, '.', n);
        for (size_t k = 0; n && k < sizeof units / sizeof *units; k++)
            is_time |= strncmp(at + n, units[k], strlen(units[k])) == 0;
        if (!n) n = 1;
        if (is_time)
            text_append(t, "#", 1);
        else if (*at != ' ' || !t->n || t->at[t->n - 1] != ' ')
            text_append(t, at, n);
        at += n;
    }
}

static void said_by(isamap *im, struct arena *a, const struct call *c, struct text *said) {
    const char *out = c->out ? path_of(a, c->out) : NULL;
    struct text all = {0}, file = {0};
    int status = c->command == COMMAND_CHECK     ? isamap_check(im, c->file)
                 : c->command == COMMAND_MAP     ? isamap_map(im, c->file)
                 : c->command == COMMAND_COMPILE ? isamap_compile(im, c->file, out)
                 : c->command == COMMAND_RUN     ? isamap_run(im, c->file)
                 : c->command == COMMAND_SIM     ? isamap_sim(im, c->file)
                 : c->command == COMMAND_SWEEP   ? isamap_sweep(im, c->file, out)
                 : c->command == COMMAND_BENCH   ? isamap_bench(im, c->file)
                 : c->command == COMMAND_SHOW    ? isamap_show(im, c->file, out)
                                                 : isamap_new_machine(im, c->file, out);
    text_printf(&all, "status %d\n", status);
    append_clean(&all, isamap_result(im));
    append_clean(&all, isamap_messages(im));
    if (out) append_file(a, &all, out);
    append_file(a, &all, arena_printf(a, "%s/trace", folder));
    append_plain(said, all.at, c->command == COMMAND_RUN || c->command == COMMAND_BENCH);
    if (out) unlink(out);
    unlink(arena_printf(a, "%s/trace", folder));
    text_free(&all);
    text_free(&file);
}

static const char *in_folder(struct arena *a, const char *value) {
    return *value == '$' ? arena_printf(a, "%s%s", folder, value + 1) : value;
}

static void say(isamap *im, struct arena *a, const struct call *c, const struct option *o,
                const char *value, bool json, struct text *said) {
    char *rest = arena_strdup(a, c->options);
    isamap_reset(im);
    for (char *word; (word = strsep(&rest, " ")) && *word;) {
        char *equals = strchr(word, '=');
        option(im, arena_strndup(a, word, (size_t)(equals - word)), equals + 1);
    }
    if (json) option(im, "json", NULL);
    const char *given = o && o->kind != OPTION_SWITCH ? in_folder(a, value) : NULL;
    if (o && isamap_option(im, o->name, given) != ISAMAP_DONE)
        append_clean(said, isamap_messages(im));
    else
        said_by(im, a, c, said);
}

static void one_option(isamap *im, const struct call *c, const struct option *o, int turn,
                       struct text *seen) {
    struct arena a;
    struct text said = {0};
    const char *value;
    arena_init(&a);
    for (int k = 0; (value = value_of(o, k)); k++) say(im, &a, c, o, value, (turn + k) % 2, &said);
    const char *name =
        arena_printf(&a, "%s %s --%s", command_table[c->command].name, c->file, o->name);
    text_printf(seen, " %s %08x", o->name, hashed(&a, name, "said", &said));
    arena_free(&a);
}

static void one_call(const struct call *c, struct text *seen) {
    isamap *im = isamap_open();
    struct arena a;
    arena_init(&a);
    text_printf(seen, "%s %s %s:", command_table[c->command].name, c->file, c->options);
    for (int json = 0; json < 2; json++) {
        struct text said = {0};
        say(im, &a, c, NULL, NULL, json, &said);
        text_printf(seen, " %08x",
                    hashed(&a, arena_printf(&a, "%s %s", command_table[c->command].name, c->file),
                           json ? "json" : "words", &said));
    }
    text_printf(seen, "\n");
    int turn = 0;
    for (const struct option *o = option_table; o->name; o++) {
        if (!(o->commands & 1u << c->command) || is_left_out(o)) continue;
        one_option(im, c, o, turn++, seen);
        if (turn % 6 == 0) text_printf(seen, "\n");
    }
    text_printf(seen, "\n");
    arena_free(&a);
    isamap_close(im);
}

static void said(void **state) {
    struct text seen = {0};
    char made[] = "/tmp/said.XXXXXX";
    struct arena a;
    (void)state;
    setenv("ISAMAP_HOST", "cpu-avx2", 1); /* beside devices, on every computer */
    setenv("ISAMAP_CACHE_SIZE", "0", 1);  /* what earlier calls left would be said */
    folder = mkdtemp(made);
    assert_non_null(folder);
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
        if (sampled(k)) one_call(&calls[k], &seen);
    arena_init(&a);
    assert_int_equal(system(arena_printf(&a, "rm -r %s", folder)), 0);
    arena_free(&a);
    golden_check("all_said", &seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
