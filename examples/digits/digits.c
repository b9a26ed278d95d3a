/* The demo: the f32 network on this CPU, the int8 one on a simulated accelerator, and on one in
 * RTL, through isamap.h alone. Usage: digits FOLDER CPU ACCELERATOR [RTL]; FOLDER has the models,
 * held-out images and labels that train.py made. */
#include "isamap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IMAGES = 360, CLASSES = 10 };

/* The data behind the header of a .npy file whose contents we know. */
static void *npy_data(const char *path, size_t bytes) {
    FILE *f = fopen(path, "rb");
    unsigned char head[10];
    void *data = malloc(bytes);
    if (!f || fread(head, 1, 10, f) != 10 ||
        fseek(f, 10 + head[8] + 256 * head[9], SEEK_SET) != 0 ||
        fread(data, 1, bytes, f) != bytes) {
        fprintf(stderr, "digits: cannot read %s\n", path);
        exit(1);
    }
    fclose(f);
    return data;
}

static double logit(const void *data, int is_int8, int i) {
    return is_int8 ? ((const int8_t *)data)[i] : ((const float *)data)[i];
}

static double accuracy(const char *out, const char *folder, int is_int8) {
    char path[512];
    snprintf(path, sizeof path, "%s/logits.npy", out);
    void *logits = npy_data(path, (size_t)IMAGES * CLASSES * (is_int8 ? 1 : 4));
    snprintf(path, sizeof path, "%s/labels.npy", folder);
    int32_t *label = npy_data(path, IMAGES * sizeof *label);
    int right = 0;
    for (int n = 0; n < IMAGES; n++) {
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            if (logit(logits, is_int8, n * CLASSES + c) >
                logit(logits, is_int8, n * CLASSES + best))
                best = c;
        right += best == label[n];
    }
    free(logits);
    free(label);
    return (double)right / IMAGES;
}

static void set_up(isamap *im, const char *machine, int n, const char *images, const char *out) {
    char define[32], input[512];
    isamap_reset(im);
    snprintf(define, sizeof define, "N=%d", n);
    if (images) snprintf(input, sizeof input, "image=%s", images);
    isamap_option(im, "machine", machine);
    isamap_option(im, "define", define);
    if (images) isamap_option(im, "input", input);
    if (out) isamap_option(im, "output-dir", out);
    if (out) isamap_option(im, "verify", NULL);
}

static void must(isamap *im, int status, const char *what) {
    if (status == ISAMAP_DONE) return;
    fprintf(stderr, "digits: %s failed (status %d)\n%s%s", what, status, isamap_messages(im),
            isamap_result(im));
    exit(1);
}

static void print_work(isamap *im) {
    double all = 0;
    const char *key;
    char path[128];
    for (int i = 0; (key = isamap_key(im, "macs_on", i)); i++) {
        snprintf(path, sizeof path, "macs_on.%s", key);
        all += isamap_number(im, path);
    }
    for (int i = 0; (key = isamap_key(im, "macs_on", i)); i++) {
        snprintf(path, sizeof path, "macs_on.%s", key);
        printf("%s%s %.1f %%", i ? ", " : "", key, 100 * isamap_number(im, path) / all);
    }
}

static void row(isamap *im, const char *model, const char *machine, const char *out,
                const char *folder, int is_int8, const char *time, double utilisation) {
    printf("%-16s %-10s %6.2f %%  %-34s %10.3f   %-10.3g ", model, machine,
           100 * accuracy(out, folder, is_int8), time, utilisation,
           isamap_number(im, "max_abs_error"));
    print_work(im);
    printf("\n");
}

/* The int8 network on an accelerator: simulated from its machine file, or on its model in RTL. */
static void int8_row(isamap *im, const char *folder, const char *machine, const char *out,
                     int is_rtl) {
    char model[512], images[512], time[64];
    snprintf(model, sizeof model, "%s/digits-int8.onnx", folder);
    snprintf(images, sizeof images, "%s/images-int8.npy", folder);
    set_up(im, machine, IMAGES, images, out);
    if (is_rtl) isamap_option(im, "rtl", NULL);
    must(im, isamap_sim(im, model), model);
    snprintf(time, sizeof time, "%.0f cycles (%s)", isamap_number(im, "cycles"),
             is_rtl ? "in RTL" : "simulated");
    row(im, "digits-int8.onnx", machine, out, folder, 1, time, isamap_number(im, "utilisation"));
}

int main(int argc, char **argv) {
    if (argc != 4 && argc != 5)
        return fprintf(stderr, "usage: digits FOLDER CPU ACCELERATOR [RTL]\n"), 2;
    const char *folder = argv[1], *cpu = argv[2], *accelerator = argv[3];
    char out[] = "/tmp/isamap-digits-XXXXXX", model[512], images[512], time[64];
    if (!mkdtemp(out)) return perror("digits"), 1;
    isamap *im = isamap_open();
    printf("%d held-out images of handwritten digits, 8x8 pixels\n\n", IMAGES);
    printf("%-16s %-10s %8s  %-34s %10s   %-10s %s\n", "model", "machine", "accuracy", "time",
           "of peak*", "difference", "MACs on");

    snprintf(model, sizeof model, "%s/digits.onnx", folder);
    snprintf(images, sizeof images, "%s/images.npy", folder);
    set_up(im, cpu, 8, NULL, NULL); /* the model needs no more to tell the rate */
    isamap_option(im, "no-values", NULL);
    must(im, isamap_sim(im, model), model);
    double utilisation = isamap_number(im, "utilisation");
    set_up(im, cpu, IMAGES, images, out);
    must(im, isamap_run(im, model), model);
    snprintf(time, sizeof time, "%.3f ms (measured)", 1e3 * isamap_number(im, "run_seconds"));
    row(im, "digits.onnx", cpu, out, folder, 0, time, utilisation);

    int8_row(im, folder, accelerator, out, 0);
    if (argc == 5) int8_row(im, folder, argv[4], out, 1);

    printf("\n* of the peak MAC rate, by the machine file's cost model; difference: the largest "
           "from the reference interpreter, all images\n"
           "Next: README.md; `build/isamap map examples/i8/c2d.isam -m edge16 --why`; "
           "machines/edge16.xml is all that isamap\n"
           "knows of that accelerator.\n");
    isamap_close(im);
    snprintf(time, sizeof time, "%s/logits.npy", out);
    unlink(time);
    rmdir(out);
    return 0;
}
