/* The command: options and words to calls of isamap.h. */
#include "isamap.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: isamap COMMAND ... [options]\n"
    "\n"
    "  isamap check FILE...                    machine (.xml), kernel (.isam), model (.onnx), "
    "schedule (.sched): is it right?\n"
    "  isamap map PROGRAM -m MACHINE           which instructions execute which statements, each "
    "with a certificate\n"
    "  isamap compile PROGRAM -m MACHINE -o OUT    OUT by suffix: .so .o .s .ll .c .bin .sched\n"
    "  isamap run PROGRAM -m MACHINE           compile and run here\n"
    "  isamap sim PROGRAM -m MACHINE           compile and simulate: values, cycles, traffic\n"
    "  isamap sweep PROGRAM -m MACHINE --set NAME=LOW..HIGH [-o OUT.csv]   cycles over machine "
    "parameters; OUT.svg too\n"
    "  isamap bench PROGRAM|SUITE.csv -m MACHINE   time against peers, or cycles against the "
    "limit\n"
    "  isamap new-machine NAME                 a commented machine file to start from, NAME.xml "
    "(docs/porting.md)\n"
    "  isamap show FILE -o OUT                 a program as .isam, its mapping on -m as .svg, a "
    "machine as .dot or .sv\n"
    "  isamap calibrate -m MACHINE [-o FILE]   measures what the machine's parameters are on this "
    "computer\n"
    "\n"
    "PROGRAM is a kernel (.isam) or an ONNX model (.onnx). MACHINE is a file, a name found in "
    "$ISAMAP_MACHINE_PATH, ./machines or\n"
    "the installed share, or `host` (default): the best machine file that fits this CPU.\n"
    "\n"
    "  -m, --machine NAME         the machine              --param NAME=VALUE      a parameter of "
    "the machine\n"
    "  -D, --define NAME=VALUE    a size of the program    --kernel NAME           which kernel of "
    "the file\n"
    "  --size NAME=VALUE          run, sim: a size that the program leaves open (T=0..4096 without "
    "-D)\n"
    "  --input NAME=F.npy         an input (else random)   --output-dir DIR        outputs as "
    "NAME.npy\n"
    "  --seed N                   of random inputs, choices (1)\n"
    "  --threads N                (1)                      --verify                compare with "
    "the interpreter\n"
    "  --rtol X                   allowed relative error   --no-check              leave out "
    "the proof of the schedule\n"
    "  --approach NAME            heuristic, instructions, random\n"
    "  --explain                  what the scheduler considered\n"
    "  --record FILE              save the decisions       --decisions FILE        replay them\n"
    "  --contexts N               slots of a copy at most (1: nothing is in flight)\n"
    "  --rewrite NAME,NAME        rewrite the program first, whether that pays or not "
    "(docs/mapping.md)\n"
    "  --allow EFFECT             what rewrites may do to floats: exact, reorders (default), "
    "finite, rounds\n"
    "  --trace FILE               sim: Chrome trace JSON   --no-values             sim: cycles "
    "alone\n"
    "  --rtl                      sim, bench: on the machine's model in RTL, with the words of the "
    "instructions\n"
    "  --latencies LOW..HIGH      sim, bench --rtl: of each transfer, random (else as the machine "
    "file "
    "says)\n"
    "  --why                      map: why not             --all, --certify        map: every "
    "mapping; certify all\n"
    "  --target CPU               compile for another CPU  --json                  the result as "
    "JSON\n"
    "\n"
    "bench:\n"
    "  --vs NAME,NAME             peers: openblas, onednn, libxsmm, blis, none (else all that are "
    "there)\n"
    "  --runs N                   rounds in turns (7)      --threads 1,2           several numbers "
    "of threads\n"
    "  --only NAMES               rows of a suite, with *  --batch N               the batch size "
    "of each row\n"
    "  --kernel FILE.isam[:NAME]  what a suite's columns bind\n"
    "  --set NAME=LOW..HIGH       a device at each value of a parameter (also NAME=V,V)\n"
    "  --contexts N               on a device: beside schedules with at most N slots for each "
    "copy\n"
    "\n"
    "Results go to standard output, the rest to standard error. Exit status: 0 done, 1 the input "
    "is wrong, 2 usage,\n"
    "3 no mapping, 4 a defect in isamap, 5 verification failed. `--version` prints the version.\n";

static int usage_error(const char *what, const char *arg) {
    fprintf(stderr, "isamap: %s '%s'; 'isamap --help' lists commands and options\n", what, arg);
    return ISAMAP_USAGE;
}

static int wants_help(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return 1;
    return strcmp(argv[1], "help") == 0;
}

static int is_switch(const char *name) {
    static const char *const switches[] = {"verify",  "check",   "json",      "why", "all",
                                           "certify", "explain", "no-values", "rtl", "no-check"};
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (strcmp(name, switches[i]) == 0) return 1;
    return 0;
}

struct arguments {
    const char *file[256];
    int nfiles;
    const char *out;
};

/* -Dx, -D x, -m x, --name x, --name=x */
static int parse_arguments(isamap *im, int argc, char **argv, struct arguments *a) {
    for (int i = 0; i < argc; i++) {
        char *arg = argv[i], name[64];
        const char *value = NULL;
        if (arg[0] != '-' || !arg[1]) {
            if (a->nfiles == 256) return usage_error("too many files at", arg);
            a->file[a->nfiles++] = arg;
            continue;
        }
        if (arg[1] != '-') {
            const char *full = arg[1] == 'm'   ? "machine"
                               : arg[1] == 'D' ? "define"
                               : arg[1] == 'o' ? "out"
                                               : NULL;
            if (!full) return usage_error("unknown option", arg);
            snprintf(name, sizeof name, "%s", full);
            if (arg[2]) value = arg + 2;
        } else {
            const char *eq = strchr(arg, '=');
            size_t n = eq ? (size_t)(eq - arg - 2) : strlen(arg + 2);
            if (n >= sizeof name) return usage_error("unknown option", arg);
            memcpy(name, arg + 2, n);
            name[n] = 0;
            if (eq) value = eq + 1;
        }
        if (!value && !is_switch(name)) {
            if (i + 1 == argc) return usage_error("a value is missing after", arg);
            value = argv[++i];
        }
        if (strcmp(name, "out") == 0)
            a->out = value;
        else if (isamap_option(im, name, value) != ISAMAP_DONE)
            return usage_error("unknown option or unusable value at", arg);
    }
    return ISAMAP_DONE;
}

static int call(isamap *im, const char *command, const char *file, const char *out) {
    if (strcmp(command, "check") == 0) return isamap_check(im, file);
    if (strcmp(command, "map") == 0) return isamap_map(im, file);
    if (strcmp(command, "run") == 0) return isamap_run(im, file);
    if (strcmp(command, "sim") == 0) return isamap_sim(im, file);
    if (strcmp(command, "sweep") == 0) return isamap_sweep(im, file, out);
    if (strcmp(command, "bench") == 0) return isamap_bench(im, file);
    if (strcmp(command, "show") == 0) return isamap_show(im, file, out);
    if (strcmp(command, "new-machine") == 0) return isamap_new_machine(im, file, out);
    if (strcmp(command, "calibrate") == 0) return isamap_calibrate(im, out);
    return isamap_compile(im, file, out);
}

static int known(const char *command) {
    static const char *const commands[] = {"check", "map",   "compile",   "run",         "sim",
                                           "show",  "bench", "calibrate", "new-machine", "sweep"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(command, commands[i]) == 0) return 1;
    return 0;
}

/* An image is shown on standard output when there is no OUT. */
static int is_image(const char *command, const char *file) {
    size_t n = strlen(file);
    return strcmp(command, "show") == 0 && n > 4 && strcmp(file + n - 4, ".bin") == 0;
}

/* Each plan's simulation takes and frees much of the same memory: fresh pages from the system would
 * be a tenth of the compile time. */
static void keep_memory(void) {
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
#endif
}

int main(int argc, char **argv) {
    keep_memory();
    if (argc < 2) return fputs(usage, stderr), ISAMAP_USAGE;
    if (wants_help(argc, argv)) return fputs(usage, stdout), ISAMAP_DONE;
    if (strcmp(argv[1], "--version") == 0) return puts("isamap " ISAMAP_VERSION), ISAMAP_DONE;
    if (!known(argv[1])) return usage_error("unknown command", argv[1]);
    isamap *im = isamap_open();
    struct arguments a = {0};
    if (isatty(STDERR_FILENO)) isamap_option(im, "progress", NULL);
    int status = parse_arguments(im, argc - 2, argv + 2, &a);
    int alone = strcmp(argv[1], "calibrate") == 0;
    if (status == ISAMAP_DONE && alone && a.nfiles)
        status = usage_error("no file is expected but", a.file[0]);
    else if (alone)
        a.file[a.nfiles++] = "";
    int writes = strcmp(argv[1], "compile") == 0 || strcmp(argv[1], "show") == 0;
    if (status == ISAMAP_DONE && !a.nfiles)
        status = usage_error("a file is missing after", argv[1]);
    else if (status == ISAMAP_DONE && a.nfiles > 1 && strcmp(argv[1], "check") != 0)
        status = usage_error("one file is expected, not", a.file[1]);
    else if (status == ISAMAP_DONE && writes && !a.out && !is_image(argv[1], a.file[0]))
        status = usage_error("-o OUT is missing after", argv[1]);
    else
        for (int i = 0; i < a.nfiles && status != ISAMAP_USAGE; i++) {
            int one = call(im, argv[1], a.file[i], a.out);
            if (one > status) status = one;
            fputs(isamap_result(im), stdout);
            fputs(isamap_messages(im), stderr);
        }
    isamap_close(im);
    return status;
}
