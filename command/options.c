/* The tables of options.h, and the values of options. */
#include "command/options.h"
#include "command/isamap_int.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- commands ---- */

#define STATUS(n) (1u << (n))
#define READS                                                                                      \
    (STATUS(ISAMAP_DONE) | STATUS(ISAMAP_INPUT) | STATUS(ISAMAP_USAGE) | STATUS(ISAMAP_RESOURCES))
#define COMPILES (READS | STATUS(ISAMAP_NO_MAPPING) | STATUS(ISAMAP_DEFECT))

const struct command command_table[COMMANDS] = {
    [COMMAND_CHECK] =
        {"check", "FILE...", FILES_MANY, "xml isam onnx sched", false, READS,
         "is a machine, kernel, model or schedule right?",
         "Reads each file and says what is wrong with it and where. A machine file (.xml): names, "
         "layouts, bit fields, synchronisation, emit texts as LLVM and the C compiler read them; "
         "--execute also runs these against their semantics (docs/trust.md). A kernel (.isam) or "
         "model (.onnx): that it can be compiled, with its "
         "sizes. A schedule (.sched): the verifier proves it for the machine of -m.",
         "isamap check machines/edge16.xml examples/i8/c2d.isam\n"
         "isamap check examples/digits/digits.onnx -D N=2"},
    [COMMAND_MAP] =
        {"map", "PROGRAM -m MACHINE", FILES_ONE, "isam onnx", false,
         READS | STATUS(ISAMAP_NO_MAPPING),
         "which instructions execute which statements, with certificates",
         "Finds every way to execute statements of the program with instructions of the machine, "
         "as the program stands and after rewrites. With --why it says, statement by statement, "
         "what kept the others from it. Nothing is compiled.",
         "isamap map examples/i8/c2d.isam -m edge16 --why\n"
         "isamap map examples/i8/gmm.isam -m vdla --all --certify"},
    [COMMAND_COMPILE] =
        {"compile", "PROGRAM -m MACHINE -o OUT", FILES_ONE, "isam onnx", true, COMPILES,
         "write a library, object, source, image or schedule",
         "The suffix of OUT says what is written: .so (with a C header beside it), .o, .s and .ll "
         "through LLVM; .c, portable C; .bin, the image for a device with instruction words; "
         ".cu, .ptx and .cubin, the kernels for a CUDA device; .sched, the schedule itself.",
         "isamap compile examples/f32/gmm.isam -m host -o gmm.so\n"
         "isamap compile examples/i8/c2d.isam -m edge16 -o c2d.sched"},
    [COMMAND_RUN] =
        {"run", "PROGRAM [-m MACHINE]", FILES_ONE, "isam onnx", false,
         COMPILES | STATUS(ISAMAP_VERIFY), "compile and run on this computer",
         "Compiles for this CPU (or the machine of -m, if it can execute here), runs, and says how "
         "long it took and which instructions did the work. Inputs that are not given are random.",
         "isamap run examples/f32/gmm.isam --verify\n"
         "isamap run examples/digits/digits.onnx -D N=360 --input image=examples/digits/images.npy "
         "--output-dir ."},
    [COMMAND_SIM] =
        {"sim", "PROGRAM -m MACHINE", FILES_ONE, "isam onnx", false,
         COMPILES | STATUS(ISAMAP_VERIFY), "compile and simulate: values, cycles, traffic",
         "Compiles for the machine and executes the schedule on a model made from the machine "
         "file: values, cycles, bytes on each bus, use of each queue. --rtl executes the words of "
         "the instructions on the machine's own model in RTL.",
         "isamap sim examples/i8/c2d.isam -m edge16 -D N=1 --verify\n"
         "isamap sim examples/i8/gmm.isam -m vdla --no-values --trace t.json"},
    [COMMAND_SWEEP] =
        {"sweep", "PROGRAM -m MACHINE --set NAME=LOW..HIGH [-o OUT.csv]", FILES_ONE, "isam onnx",
         false, COMPILES, "cycles over values of the machine's parameters",
         "Compiles and simulates for each value of the parameters that --set names, and marks the "
         "points that no other beats. OUT.csv has a row for each point; OUT.svg beside it shows "
         "them.",
         "isamap sweep examples/i8/gmm.isam -m edge16 --set SPAD=16K..64K -o spad.csv"},
    [COMMAND_BENCH] =
        {"bench", "PROGRAM|SUITE.csv [-m MACHINE]", FILES_ONE, "csv isam onnx", false,
         COMPILES | STATUS(ISAMAP_VERIFY), "time against peers, or cycles against the limit",
         "On this CPU: times each workload in turns with what a user would call instead, verifies "
         "the values, and compares with the peak measured in the same run. On a device: simulated "
         "cycles beside the least that the work needs.",
         "isamap bench bench/squares.csv --only 'sq128,sq256'\n"
         "isamap bench bench/resnet18_i8.csv -m edge16 --only rn18_c11"},
    [COMMAND_SHOW] =
        {"show", "FILE -o OUT", FILES_ONE, "isam onnx xml bin", false, READS,
         "a program, mapping, machine or image as a file to look at",
         "The suffixes say what is shown: a program as .isam, or its mapping (with -m) as .svg; a "
         "machine as .dot (a graph) or .sv (a SystemVerilog package of its bit fields); an image "
         "(.bin) as .txt or .sched, or on standard output without -o.",
         "isamap show examples/i8/c2d.isam -m edge16 -o c2d.svg\n"
         "isamap show machines/edge16.xml -o edge16.dot"},
    [COMMAND_NEW_MACHINE] =
        {"new-machine", "NAME", FILES_ONE, "", false, READS,
         "a commented machine file to start from",
         "Writes NAME.xml, a complete small accelerator with a comment on each part. "
         "docs/porting.md goes on from there.",
         "isamap new-machine mine"},
    [COMMAND_CALIBRATE] =
        {"calibrate", "[-m MACHINE]", FILES_NONE, "", false, COMPILES,
         "measure the machine's parameters on this computer",
         "Measures the parameters for which the machine file has an element 'measure', and writes "
         "them where the machine will find them. Takes about 20 seconds.",
         "isamap calibrate -m host"},
};

/* ---- exit statuses ---- */

static const char *const statuses[] = {
    [ISAMAP_DONE] = "done",
    [ISAMAP_INPUT] = "the input is wrong",
    [ISAMAP_USAGE] = "wrong usage",
    [ISAMAP_NO_MAPPING] = "no mapping",
    [ISAMAP_DEFECT] = "a defect in isamap",
    [ISAMAP_VERIFY] = "verification failed",
    [ISAMAP_RESOURCES] = "resources exhausted",
};

const char *status_text(int status) {
    return status >= 0 && status < (int)(sizeof statuses / sizeof *statuses) ? statuses[status]
                                                                             : "";
}

/* ---- options ---- */

static const char *approach_word(int i) {
    return approaches[i] ? approaches[i]->name : NULL;
}

static const char *weights_word(int i) {
    return i < WEIGHTS_PLACES ? weights_name[i] : NULL;
}
static const char *effect_word(int i) {
    return i < REWRITE_EFFECTS ? rewrite_effect_name[i] : NULL;
}

#define ON(id) (1u << COMMAND_##id)
#define PLANS (ON(COMPILE) | ON(RUN) | ON(SIM) | ON(SWEEP) | ON(BENCH))
#define EXECUTES (ON(RUN) | ON(SIM))
#define ALL ((1u << COMMANDS) - 1)
#define AT(field) offsetof(struct options, field)

const struct option option_table[] = {
    {"machine", 'm', OPTION_MACHINE, AT(machine), 0, 0, "NAME",
     PLANS | ON(MAP) | ON(CHECK) | ON(SHOW) | ON(CALIBRATE), NULL,
     "the machine: a file, a name, or 'host' (the default), the best that fits this CPU"},
    {"define", 'D', OPTION_PAIR, AT(define), 0, 0, "NAME=VALUE",
     PLANS | ON(MAP) | ON(CHECK) | ON(SHOW), NULL,
     "a size of the program; K, M and G may follow the number"},
    {"shape", 0, OPTION_PAIR, AT(shape), 0, 0, "INPUT=N,N", PLANS | ON(MAP) | ON(CHECK) | ON(SHOW),
     NULL, "the dimensions of a model's input, where the model leaves them open"},
    {"op", 0, OPTION_PAIR_FILE, AT(op), 0, 0, "DOMAIN.NAME=F.isam",
     PLANS | ON(MAP) | ON(CHECK) | ON(SHOW), NULL,
     "a model's operator is what the first kernel of the file computes"},
    {"out", 'o', OPTION_FILE, NOT_STORED, 0, 0, "FILE",
     ON(COMPILE) | ON(SHOW) | ON(SWEEP) | ON(NEW_MACHINE) | ON(CALIBRATE), NULL, "what is written"},
    {"kernel", 0, OPTION_TEXT, AT(kernel), 0, 0, "NAME",
     (PLANS & ~ON(BENCH)) | ON(MAP) | ON(CHECK) | ON(SHOW), NULL,
     "which kernel of the file, if not the first"},
    {"kernel", 0, OPTION_FILE, AT(kernel), 0, 0, "FILE.isam[:NAME]", ON(BENCH), NULL,
     "what a suite's columns bind; for a program, which kernel of the file"},
    {"param", 0, OPTION_PAIR, AT(param), 0, 0, "NAME=VALUE",
     PLANS | ON(MAP) | ON(CHECK) | ON(SHOW) | ON(CALIBRATE), NULL, "a parameter of the machine"},
    {"set", 0, OPTION_PAIR, AT(set), 0, 0, "NAME=LOW..HIGH", ON(SWEEP) | ON(BENCH), NULL,
     "values of a machine's parameter to go through; also NAME=V,V"},
    {"size", 0, OPTION_PAIR, AT(size), 0, 0, "NAME=VALUE", EXECUTES | ON(SWEEP), NULL,
     "a size that the program leaves open (T=0..4096, without -D)"},
    {"input", 0, OPTION_PAIR_FILE, AT(input), 0, 0, "NAME=F.npy", EXECUTES | ON(COMPILE), NULL,
     "an input, instead of random values; for a .bin, its constants"},
    {"output-dir", 0, OPTION_FOLDER, AT(output_dir), 0, 0, "FOLDER", EXECUTES, NULL,
     "each output is written there as NAME.npy"},
    {"seed", 0, OPTION_LONG, AT(seed), 0, 0x1p53, "N", PLANS | ON(SHOW), NULL,
     "of random inputs and random choices (1)"},
    {"threads", 0, OPTION_COUNTS, AT(threads), 1, 1024, "N", PLANS & ~ON(BENCH), NULL,
     "threads of the compiled program (1)"},
    {"threads", 0, OPTION_COUNTS, AT(threads), 1, 1024, "N,N", ON(BENCH), NULL,
     "threads of the compiled programs and the peers, each number in turn (1)"},
    {"verify", 0, OPTION_SWITCH, AT(verify), 0, 0, NULL, EXECUTES | ON(BENCH), NULL,
     "compare with the reference interpreter"},
    {"rtol", 0, OPTION_REAL, AT(rtol), 0, 1, "X", EXECUTES | ON(BENCH), NULL,
     "allowed relative error, instead of a bound from the number of terms"},
    {"execute", 0, OPTION_SWITCH, AT(execute), 0, 0, NULL, ON(CHECK), NULL,
     "run each emit text of a machine file against its semantics: it is code"},
    {"no-check", 0, OPTION_SWITCH, AT(no_check), 0, 0, NULL, PLANS, NULL,
     "leave out the proof of the schedule"},
    {"no-cache", 0, OPTION_SWITCH, AT(no_cache), 0, 0, NULL, ON(COMPILE) | EXECUTES, NULL,
     "compile anew, and keep nothing, whatever earlier calls left"},
    {"check", 0, OPTION_SWITCH, AT(check), 0, 0, NULL, PLANS, NULL,
     "with --rtl as --verify; otherwise the schedule is proved without it"},
    {"strict", 0, OPTION_SWITCH, AT(strict), 0, 0, NULL, PLANS, NULL,
     "products and their sums on the fallback of a machine with instructions for them, or on the "
     "host of a device that has its own, are an error"},
    {"approach", 0, OPTION_WORDS, AT(approach), 0, 0, "NAME", PLANS | ON(SHOW), approach_word,
     "who answers the compiler's questions (heuristic)"},
    {"record", 0, OPTION_FILE, AT(record), 0, 0, "FILE", PLANS & ~ON(SWEEP), NULL,
     "save the decisions"},
    {"decisions", 0, OPTION_FILE, AT(decisions), 0, 0, "FILE", PLANS | ON(SHOW), NULL,
     "replay decisions; with --approach, those that are missing are asked for"},
    {"explain", 0, OPTION_SWITCH, AT(explain), 0, 0, NULL, ON(COMPILE) | EXECUTES, NULL,
     "what the scheduler considered"},
    {"contexts", 0, OPTION_COUNT, AT(contexts), 1, 3, "N", PLANS & ~ON(BENCH), NULL,
     "slots of a copy at most (1: nothing is in flight)"},
    {"contexts", 0, OPTION_COUNT, AT(contexts), 1, 3, "N", ON(BENCH), NULL,
     "on a device: beside schedules with at most N slots for each copy"},
    {"rewrite", 0, OPTION_TEXT, AT(rewrite), 0, 0, "NAME,NAME", PLANS | ON(SHOW), NULL,
     "rewrite the program first, whether that pays or not (docs/mapping.md)"},
    {"allow", 0, OPTION_WORDS, AT(allow), 0, 0, "EFFECT", PLANS | ON(SHOW) | ON(CHECK), effect_word,
     "what rewrites may do to floats (reorders)"},
    {"state", 0, OPTION_PAIR, AT(state), 0, 0, "INPUT=OUTPUT", ON(COMPILE) | ON(RUN), NULL,
     "what a run leaves in OUTPUT is INPUT of the next, as in a recurrence: entries for streams"},
    {"steps", 0, OPTION_LONG, AT(steps), 1, 1e9, "N", ON(RUN), NULL,
     "also time N steps of a stream, one after the other (each of length 1, or as --size says)"},
    {"compare", 0, OPTION_FILE, AT(compare), 0, 0, "FILE.npz", ON(RUN), NULL,
     "a model's tensors beside those of the file, which has its inputs too"},
    {"target", 0, OPTION_TEXT, AT(target), 0, 0, "CPU", ON(COMPILE) | ON(RUN) | ON(BENCH), NULL,
     "generate code for another CPU, by LLVM's name of it"},
    {"weights", 0, OPTION_WORDS, AT(weights), 0, 0, "WHERE", ON(COMPILE), weights_word,
     "a model's weights: embed (in .so and .o), file (OUT's name with .weights) or arguments"},
    {"why", 0, OPTION_SWITCH, AT(why), 0, 0, NULL, ON(MAP), NULL,
     "say what kept each instruction from each statement"},
    {"all", 0, OPTION_SWITCH, AT(all), 0, 0, NULL, ON(MAP), NULL,
     "count every mapping, as each rule leaves them"},
    {"certify", 0, OPTION_SWITCH, AT(certify), 0, 0, NULL, ON(MAP), NULL,
     "with --all: prove each of them"},
    {"trace", 0, OPTION_FILE, AT(trace), 0, 0, "FILE", ON(SIM), NULL,
     "a time line as Chrome trace JSON, for Perfetto"},
    {"profile", 0, OPTION_SWITCH, AT(profile), 0, 0, NULL, ON(RUN), NULL,
     "the time of each part of the schedule, beside what was expected and its limit"},
    {"profile-trace", 0, OPTION_FILE, AT(profile_trace), 0, 0, "FILE", ON(RUN), NULL,
     "these times as a time line, as Chrome trace JSON, for Perfetto"},
    {"no-values", 0, OPTION_SWITCH, AT(no_values), 0, 0, NULL, ON(SIM), NULL, "cycles alone"},
    {"walk", 0, OPTION_SWITCH, AT(walk), 0, 0, NULL, ON(SIM), NULL,
     "with --no-values: every instruction, where otherwise what repeats is multiplied"},
    {"rtl", 0, OPTION_SWITCH, AT(rtl), 0, 0, NULL, ON(SIM) | ON(BENCH), NULL,
     "on the machine's model in RTL, with the words of its instructions"},
    {"latencies", 0, OPTION_LATENCIES, AT(latencies), 0, 0, "LOW..HIGH", ON(SIM) | ON(BENCH), NULL,
     "of each transfer, random; else as the machine file says"},
    {"vs", 0, OPTION_TEXT, AT(vs), 0, 0, "NAME,NAME", ON(BENCH), NULL,
     "peers: openblas, onednn, libxsmm, blis, on a device cublas, cudnn; or none; else all that "
     "are there"},
    {"runs", 0, OPTION_COUNT, AT(runs), 1, 1000, "N", ON(BENCH), NULL, "rounds in turns (7)"},
    {"only", 0, OPTION_TEXT, AT(only), 0, 0, "NAMES", ON(BENCH), NULL,
     "rows of the suite, with commas between; * and ? stand for others"},
    {"batch", 0, OPTION_LONG, AT(batch), 1, 1 << 20, "N", ON(BENCH), NULL,
     "the batch size of each row"},
    {"log", 0, OPTION_FILE, AT(log), 0, 0, "FILE", ON(BENCH), NULL,
     "each result as it ends, as a line of JSON: a run that is cut off loses none of them"},
    {"json", 0, OPTION_SWITCH, AT(json), 0, 0, NULL, ALL, NULL,
     "the result, and errors, as JSON (docs/command.md)"},
    {"help", 'h', OPTION_SWITCH, NOT_STORED, 0, 0, NULL, ALL, NULL, "this text"},
    {NULL, 0, OPTION_SWITCH, NOT_STORED, 0, 0, NULL, 0, NULL, NULL}};

/* ---- find ---- */

static bool applies(const struct option *o, int command) {
    return command == COMMANDS || (o->commands & 1u << command);
}

const struct option *option_find(const char *name, int command) {
    for (const struct option *o = option_table; o->name; o++)
        if (strcmp(o->name, name) == 0 && applies(o, command)) return o;
    return NULL;
}

const struct option *option_letter(char letter, int command) {
    for (const struct option *o = option_table; o->name; o++)
        if (o->letter == letter && applies(o, command)) return o;
    return NULL;
}

unsigned option_commands(const char *name) {
    unsigned all = 0;
    for (const struct option *o = option_table; o->name; o++)
        if (strcmp(o->name, name) == 0) all |= o->commands;
    return all;
}

int command_find(const char *name) {
    for (int c = 0; c < COMMANDS; c++)
        if (strcmp(command_table[c].name, name) == 0) return c;
    return COMMANDS;
}

/* ---- values ---- */

static bool read_number(const char *value, const struct option *o, bool whole, double *out) {
    char *end;
    if (!isdigit((unsigned char)*value) && *value != '.' && *value != '-') return false;
    *out = strtod(value, &end);
    return *end == 0 && *out >= o->least && *out <= o->most && (!whole || *out == floor(*out));
}

/* "4", or "1,2,4" for bench. */
static bool store_counts(struct options *to, const struct option *o, const char *value) {
    int count[MAX_THREAD_COUNTS], n = 0;
    double number;
    char one[16];
    for (const char *p = value; n < MAX_THREAD_COUNTS; p++) {
        size_t k = strcspn(p, ",");
        if (k >= sizeof one) return false;
        memcpy(one, p, k);
        one[k] = 0;
        if (!read_number(one, o, true, &number)) return false;
        count[n++] = (int)number;
        p += k;
        if (!*p) break;
        if (n == MAX_THREAD_COUNTS) return false;
    }
    memcpy(to->thread_count, count, (size_t)n * sizeof *count);
    to->nthreads = n;
    to->threads = count[0];
    return true;
}

static bool store_latencies(struct options *to, const char *value) {
    unsigned low, high;
    int n = 0;
    if (sscanf(value, "%u..%u%n", &low, &high, &n) != 2 || value[n]) return false;
    to->latencies = (struct latencies){.low = low, .high = high};
    return high >= low && high > 0;
}

/* `again`: a name that is there already has the new value, as every option that is given twice. */
static bool store_pair(struct pairs *p, struct arena *a, const char *value, bool again) {
    const char *eq = strchr(value, '=');
    if (!eq || eq == value) return false;
    const char *name = arena_strndup(a, value, (size_t)(eq - value));
    int at = again ? 0 : p->n;
    while (at < p->n && strcmp(p->at[at].name, name) != 0) at++;
    if (at == p->cap) GROW(a, p->at, p->n, p->cap);
    p->at[at] = (struct pair){name, arena_strdup(a, eq + 1)};
    if (at == p->n) p->n++;
    return true;
}

static void say_expected(struct text *t, const struct option *o) {
    switch (o->kind) {
    case OPTION_COUNT:
    case OPTION_COUNTS:
    case OPTION_LONG:
        if (o->most < 0x1p40) {
            text_printf(t, "expected %.0f to %.0f", o->least, o->most);
            if (o->kind == OPTION_COUNTS) text_printf(t, "; for bench also several, as 1,2,4");
        } else {
            text_printf(t, "expected a whole number from %.0f", o->least);
        }
        break;
    case OPTION_REAL:
        text_printf(t, "expected a number from %g to %g", o->least, o->most);
        break;
    case OPTION_LATENCIES:
        text_printf(t, "expected LOW..HIGH in cycles, for instance 20..200");
        break;
    default:
        text_printf(t, "expected %s", o->value ? o->value : "no value");
    }
}

bool option_store(struct options *to, struct arena *a, const struct option *o, const char *value,
                  struct text *expected) {
    void *at = (char *)to + o->at;
    double number;
    bool good = o->at != NOT_STORED && (value != NULL || o->kind == OPTION_SWITCH);
    if (good) switch (o->kind) {
        case OPTION_SWITCH:
            good = value == NULL;
            if (good) *(bool *)at = true;
            break;
        case OPTION_PAIR:
        case OPTION_PAIR_FILE:
            good = store_pair(at, a, value, o->kind == OPTION_PAIR);
            break;
        case OPTION_COUNT:
            good = read_number(value, o, true, &number);
            if (good) *(int *)at = (int)number;
            break;
        case OPTION_LONG:
            good = read_number(value, o, true, &number);
            if (good) *(int64_t *)at = (int64_t)number;
            break;
        case OPTION_REAL:
            good = read_number(value, o, false, &number);
            if (good) *(double *)at = number;
            break;
        case OPTION_COUNTS:
            good = store_counts(to, o, value);
            break;
        case OPTION_LATENCIES:
            good = store_latencies(to, value);
            break;
        default:
            *(const char **)at = arena_strdup(a, value);
        }
    if (!good) say_expected(expected, o);
    return good;
}
