/* The texts of both parts. */
#include "backends/cuda/cuda_int.h"

#include <string.h>

static const char *const cuda_device_text =
    "#ifdef __CUDACC_RTC__\n"
    "typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long "
    "int64_t;\n"
    "typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;\n"
    "typedef unsigned long uint64_t;\n"
    "#define INT64_C(x) x##L\n"
    "#define UINT64_C(x) x##UL\n"
    "#define INT64_MIN (-INT64_C(9223372036854775807) - 1)\n"
    "#define NAN __int_as_float(0x7fffffff)\n"
    "#define INFINITY __int_as_float(0x7f800000)\n"
    "#else\n#include <math.h>\n#include <stdint.h>\n#include <string.h>\n#endif\n"
    "#define ISAMAP_FUNCTION static __device__ __forceinline__\n";

/* The driver is found when the program first runs. One run at a time. */
static const char *const cuda_host_text =
    "struct isamap_driver {\n"
    "  void *library, *module, *context; uint64_t base; int status, device; char said[400];\n"
    "  int (*init)(unsigned), (*get)(int *, int), (*retain)(void **, int), (*release)(int), "
    "(*use)(void *);\n"
    "  int (*load)(void **, const void *), (*unload)(void *), (*function)(void **, void *, const "
    "char *);\n"
    "  int (*most_shared)(void *, int, int), (*take)(uint64_t *, size_t), (*give)(uint64_t);\n"
    "  int (*in)(uint64_t, const void *, size_t), (*out)(void *, uint64_t, size_t);\n"
    "  int (*fill)(uint64_t, unsigned char, size_t), (*wait)(void);\n"
    "  int (*new_event)(void **, unsigned), (*mark)(void *, void *), (*between)(float *, void *, "
    "void "
    "*);\n"
    "  int (*copy)(uint64_t, uint64_t, size_t), (*words)(int, const char **), (*property)(int *, "
    "int, int);\n"
    "  void **event; double seconds; int nevents, rounds, round, ncopies, warm; size_t span, each; "
    "uint64_t more;\n"
    "  int (*new_stream)(void **, unsigned), (*end_stream)(void *), (*fill_in)(uint64_t, unsigned "
    "char, size_t, void *);\n"
    "  int (*record)(void *, int), (*recorded)(void *, void **), (*make)(void **, void *, unsigned "
    "long long);\n"
    "  int (*replay)(void *, void *), (*drop)(void *), (*forget)(void *);\n"
    "  void *stream; struct isamap_graph *graphs, *recording, *counted; int plays, launches;\n"
    "  int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, "
    "void *, void **, void **);\n"
    "};\n"
    "static struct isamap_driver isamap_driver;\n"
    "static pthread_mutex_t isamap_one = PTHREAD_MUTEX_INITIALIZER;\n"
    "struct isamap_device { struct isamap_driver *driver; uint64_t base; int failed; };\n"
    "\n"
    "static int isamap_look(struct isamap_driver *x, const char *const *name, void *const *to, int "
    "n) {\n"
    "  for (int i = 0; i < n; i++) {\n"
    "    void *at = dlsym(x->library, name[i]);\n"
    "    if (!at) return 0;\n"
    "    memcpy(to[i], &at, sizeof at);\n"
    "  }\n"
    "  return 1;\n"
    "}\n"
    "/* A stream in which launches are recorded; without one where the driver is older than that. "
    "*/\n"
    "static void isamap_find_stream(struct isamap_driver *x) {\n"
    "  static const char *const name[] = {\"cuStreamCreate\", \"cuStreamDestroy_v2\", "
    "\"cuMemsetD8Async\", \"cuStreamBeginCapture_v2\",\n"
    "    \"cuStreamEndCapture\", \"cuGraphInstantiateWithFlags\", \"cuGraphLaunch\", "
    "\"cuGraphDestroy\", \"cuGraphExecDestroy\"};\n"
    "  void *const to[] = {&x->new_stream, &x->end_stream, &x->fill_in, &x->record, &x->recorded, "
    "&x->make, &x->replay, &x->drop, &x->forget};\n"
    "  if (!isamap_look(x, name, to, (int)(sizeof to / sizeof *to)) || x->new_stream(&x->stream, "
    "0)) x->stream = 0;\n"
    "}\n"
    "static int isamap_find(struct isamap_driver *x) {\n"
    "  static const char *const name[] = {\"cuInit\", \"cuDeviceGet\", "
    "\"cuDevicePrimaryCtxRetain\", "
    "\"cuDevicePrimaryCtxRelease_v2\", \"cuCtxSetCurrent\",\n"
    "    \"cuModuleLoadData\", \"cuModuleUnload\", \"cuModuleGetFunction\", "
    "\"cuFuncSetAttribute\", "
    "\"cuMemAlloc_v2\", \"cuMemFree_v2\",\n"
    "    \"cuMemcpyHtoD_v2\", \"cuMemcpyDtoH_v2\", \"cuMemsetD8_v2\", \"cuCtxSynchronize\", "
    "\"cuLaunchKernel\",\n"
    "    \"cuEventCreate\", \"cuEventRecord\", \"cuEventElapsedTime\", \"cuMemcpyDtoD_v2\",\n"
    "    \"cuGetErrorString\", \"cuDeviceGetAttribute\"};\n"
    "  void *const to[] = {&x->init, &x->get, &x->retain, &x->release, &x->use, &x->load, "
    "&x->unload, "
    "&x->function, &x->most_shared,\n"
    "    &x->take, &x->give, &x->in, &x->out, &x->fill, &x->wait, &x->launch,\n"
    "    &x->new_event, &x->mark, &x->between, &x->copy, &x->words, &x->property};\n"
    "  x->library = dlopen(\"libcuda.so.1\", RTLD_NOW | RTLD_LOCAL);\n"
    "  return x->library && isamap_look(x, name, to, (int)(sizeof to / sizeof *to));\n"
    "}\n"
    "\n"
    "/* What failed, in CUDA's words too. */\n"
    "static int isamap_say(struct isamap_driver *x, int status, const char *what, const char "
    "*name) {\n"
    "  const char *words = 0;\n"
    "  if (x->words(status, &words) || !words) words = \"unknown\";\n"
    "  snprintf(x->said, sizeof x->said, \"%s%s: %s (CUDA error %d)\", what, name, words, "
    "status);\n"
    "  return ISAMAP_DEVICE_FAILED;\n"
    "}\n"
    "/* The cubin runs on devices of the target's major version, PTX on all that are later, where "
    "the driver compiles it. */\n"
    "static int isamap_load(struct isamap_driver *x, const void *cubin, const void *ptx) {\n"
    "  enum { INVALID_IMAGE = 200, NO_BINARY = 209, MAJOR = 75, MINOR = 76 };\n"
    "  char text[200];\n"
    "  int major = 0, minor = 0, status = x->load(&x->module, cubin);\n"
    "  if (ptx && (status == NO_BINARY || status == INVALID_IMAGE)) status = x->load(&x->module, "
    "ptx);\n"
    "  if (!status) return 0;\n"
    "  x->module = 0;\n"
    "  if (x->property(&major, MAJOR, x->device) || x->property(&minor, MINOR, x->device)) major = "
    "minor = 0;\n"
    "  snprintf(text, sizeof text, \"the device, of compute capability %d.%d, refuses the code, "
    "which is for %s\", major, minor, ISAMAP_TARGET);\n"
    "  return isamap_say(x, status, text, ptx ? \" and later\" : \" alone\");\n"
    "}\n"
    "/* A driver loads a kernel when it is asked for, or first launched: before a time is taken. "
    "*/\n"
    "static int isamap_find_kernels(struct isamap_driver *x) {\n"
    "  int (*ready)(void *) = 0, status = 0;\n"
    "  void *at = dlsym(x->library, \"cuFuncLoad\");\n"
    "  memcpy(&ready, &at, sizeof at);\n"
    "  for (struct isamap_kernel *k = isamap_kernel; k->name && !status; k++) {\n"
    "    status = x->function(&k->function, x->module, k->name);\n"
    "    if (!status && ready) status = ready(k->function);\n"
    "    if (status) return isamap_say(x, status, \"the device refuses kernel \", k->name);\n"
    "  }\n"
    "  return 0;\n"
    "}\n"
    "/* Once: the context, the kernels, one allocation. */\n"
    "static int isamap_begin(struct isamap_driver *x, const void *cubin, const void *ptx, size_t "
    "bytes) {\n"
    "  char text[80];\n"
    "  int status;\n"
    "  if (!x->library && !isamap_find(x)) return ISAMAP_NO_DEVICE;\n"
    "  if (x->init(0) || x->get(&x->device, 0)) return ISAMAP_NO_DEVICE;\n"
    "  if (!x->context && x->retain(&x->context, x->device)) return ISAMAP_NO_DEVICE;\n"
    "  if ((status = x->use(x->context))) return isamap_say(x, status, \"the device has no "
    "context\", \"\");\n"
    "  if (!x->module && (status = isamap_load(x, cubin, ptx))) return status;\n"
    "  if ((status = isamap_find_kernels(x))) return status;\n"
    "  snprintf(text, sizeof text, \"the device has no room for %zu bytes\", bytes);\n"
    "  if ((status = x->take(&x->base, bytes))) return x->base = 0, isamap_say(x, status, text, "
    "\"\");\n"
    "  isamap_find_stream(x);\n"
    "  return 0;\n"
    "}\n"
    "static void isamap_check_of(struct isamap_device *d, int status, const char *what, const char "
    "*name) {\n"
    "  if (status && !d->failed) d->failed = isamap_say(d->driver, status, what, name);\n"
    "}\n"
    "static void isamap_check(struct isamap_device *d, int status) {\n"
    "  isamap_check_of(d, status, \"the device failed\", \"\");\n"
    "}\n"
    "static void isamap_open(struct isamap_device *d, const void *cubin, const void *ptx, "
    "size_t bytes) {\n"
    "  pthread_mutex_lock(&isamap_one);\n"
    "  struct isamap_driver *x = d->driver = &isamap_driver;\n"
    "  if (!x->base) x->status = isamap_begin(x, cubin, ptx, bytes);\n"
    "  d->base = x->base;\n"
    "  d->failed = x->status;\n"
    "  if (!d->failed) isamap_check(d, x->use(x->context));\n"
    "}\n"
    "/* The launches are made `rounds` times, each time between two events, so that what the "
    "device "
    "takes for them is known\n"
    "   without the copies of the arrays. Several rounds go in turns over copies of all arrays "
    "that "
    "take `span` bytes\n"
    "   together: none finds its own in a cache. */\n"
    "static void isamap_rounds(struct isamap_device *d, size_t bytes) {\n"
    "  struct isamap_driver *x = d->driver;\n"
    "  int n = x->rounds < 1 ? 1 : x->rounds;\n"
    "  if (d->failed) return;\n"
    "  void **event = (void **)realloc(x->event, (size_t)(n + 1 > x->nevents ? n + 1 : x->nevents) "
    "* sizeof *event);\n"
    "  enum { OUT_OF_MEMORY = 2 };\n"
    "  if (!event) { isamap_check(d, OUT_OF_MEMORY); return; }\n"
    "  for (x->event = event; x->nevents <= n && !d->failed; x->nevents++) isamap_check(d, "
    "x->new_event(&x->event[x->nevents], 0));\n"
    "  x->rounds = n, x->round = 0, x->ncopies = 1, x->warm = 0, x->more = 0;\n"
    "  x->each = (bytes + 255) / 256 * 256;\n"
    "  size_t copies = n > 1 ? (x->span + x->each - 1) / x->each : 1;\n"
    "  if (copies > (size_t)n) copies = (size_t)n;\n"
    "  if (d->failed || copies < 2 || x->take(&x->more, (copies - 1) * x->each)) return;\n"
    "  for (; x->ncopies < (int)copies; x->ncopies++)\n"
    "    isamap_check(d, x->copy(x->more + (uint64_t)(x->ncopies - 1) * x->each, x->base, "
    "bytes));\n"
    "}\n";

static const char *const closing_text =
    "static int isamap_less(const void *a, const void *b) {\n"
    "  return (*(const float *)a > *(const float *)b) - (*(const float *)a < *(const float *)b);\n"
    "}\n"
    "static void isamap_median(struct isamap_device *d) {\n"
    "  struct isamap_driver *x = d->driver;\n"
    "  float *ms = (float *)calloc((size_t)x->rounds, sizeof *ms);\n"
    "  for (int k = 0; ms && !d->failed && k < x->rounds; k++)\n"
    "    isamap_check(d, x->between(&ms[k], x->event[k], x->event[k + 1]));\n"
    "  if (ms) qsort(ms, (size_t)x->rounds, sizeof *ms, isamap_less);\n"
    "  x->seconds = ms ? 5e-4 * ((double)ms[x->rounds / 2] + ms[(x->rounds - 1) / 2]) : 0;\n"
    "  free(ms);\n"
    "}\n"
    "static int isamap_close(struct isamap_device *d) {\n"
    "  struct isamap_driver *x = d->driver;\n"
    "  if (!d->failed) isamap_check_of(d, x->wait(), \"a launch failed on the device\", \"\");\n"
    "  if (!d->failed) isamap_median(d);\n"
    "  isamap_graphs_free(x, x->base);\n"
    "  if (x->more) x->give(x->more);\n"
    "  x->more = 0, x->rounds = 1;\n"
    "  pthread_mutex_unlock(&isamap_one);\n"
    "  return d->failed;\n"
    "}\n"
    "ISAMAP_FUNCTION void isamap_send(struct isamap_device *d, int64_t at, const void *from, "
    "size_t bytes) {\n"
    "  if (!d->failed) isamap_check(d, d->driver->in(d->base + at, from, bytes));\n"
    "}\n"
    "ISAMAP_FUNCTION void isamap_fetch(struct isamap_device *d, int64_t at, void *to, size_t "
    "bytes) {\n"
    "  if (!d->failed) isamap_check_of(d, d->driver->wait(), \"a launch failed on the device\", "
    "\"\");\n"
    "  if (!d->failed) isamap_check(d, d->driver->out(to, d->base + at, bytes));\n"
    "}\n"
    "ISAMAP_FUNCTION void isamap_zero(struct isamap_device *d, int64_t at, size_t bytes) {\n"
    "  struct isamap_driver *x = d->driver;\n"
    "  if (d->failed) return;\n"
    "  isamap_check(d, x->stream ? x->fill_in(d->base + at, 0, bytes, x->stream) : x->fill(d->base "
    "+ at, 0, bytes));\n"
    "}\n"
    "ISAMAP_FUNCTION void isamap_launch(struct isamap_device *d, int kernel, int64_t x, "
    "int64_t y, int64_t z, int threads, int shared, void **argument) {\n"
    "  enum { MOST_DYNAMIC_SHARED = 8 };\n"
    "  void *f = isamap_kernel[kernel].function;\n"
    "  int status = 0;\n"
    "  if (d->failed || x <= 0 || y <= 0 || z <= 0) return;\n"
    "  if (shared) status = d->driver->most_shared(f, MOST_DYNAMIC_SHARED, shared);\n"
    "  if (!status) status = d->driver->launch(f, (unsigned)x, (unsigned)y, (unsigned)z, "
    "(unsigned)threads, 1, 1, (unsigned)shared, d->driver->stream, argument, 0);\n"
    "  isamap_check_of(d, status, \"the device refuses to launch kernel \", "
    "isamap_kernel[kernel].name);\n"
    "  d->driver->launches++;\n"
    "}\n"
    "__attribute__((destructor)) static void isamap_end(void) {\n"
    "  struct isamap_driver *x = &isamap_driver;\n"
    "  free(x->event);\n"
    "  isamap_graphs_free(x, 0);\n"
    "  if (x->stream) x->end_stream(x->stream);\n"
    "  if (x->base) x->give(x->base);\n"
    "  if (x->module) x->unload(x->module);\n"
    "  if (x->context) x->release(x->device);\n"
    "  if (x->library) dlclose(x->library);\n"
    "}\n";

static int lines_of(const char *text) {
    int n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

static const char *device_part(struct cuda *c, struct arena *a) {
    struct cgen *g = &c->g;
    struct text t = {0};
    text_printf(&t, "/* %s on %s. Compile without contraction: --fmad=false. */\n",
                g->interface->name, g->machine->name);
    text_printf(&t, "%s\n%s\n%s\n%s\n", cuda_device_text, c_support_integers, c_support,
                emit_prelude(&g->arena, g->machine, LANGUAGE_CUDA));
    cuda_declare_states(c, &t);
    text_append(&t, g->emits.at ? g->emits.at : "", g->emits.n);
    text_printf(&t, "#line %d \"%s.cu\"\n", lines_of(t.at) + 2, g->interface->name);
    text_append(&t, c->kernels.at ? c->kernels.at : "", c->kernels.n);
    const char *text = arena_strdup(a, t.at);
    text_free(&t);
    return text;
}

static const char *host_part(struct cuda *c, struct arena *a, const char *folder,
                             const char *weights, const char *target) {
    struct cgen *g = &c->g;
    const char *name = g->interface->name;
    struct text t = {0};
    text_printf(
        &t,
        "%s\n#include <dlfcn.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "#include <string.h>\n",
        interface_header(&g->arena, g->interface));
    text_printf(&t, "#define ISAMAP_FUNCTION static inline\n%s\n", c_support_integers);
    text_printf(&t, "enum { ISAMAP_NO_DEVICE = %d, ISAMAP_DEVICE_FAILED = %d };\n",
                INTERFACE_NO_DEVICE, INTERFACE_DEVICE);
    if (weights) c_embed(&t, name, "weights", weights);
    text_printf(&t, "static struct isamap_kernel { const char *name; void *function; } "
                    "isamap_kernel[] = {\n");
    for (int k = 0; k < c->nkernels; k++) text_printf(&t, "  {\"%s\", 0},\n", c->use[k].name);
    text_printf(&t, "  {0, 0}};\n");
    text_printf(&t, "#define ISAMAP_TARGET \"%s\"\n", target ? target : "");
    c_embed(&t, name, "cubin", arena_printf(&g->arena, "%s/%s.cubin", folder, name));
    if (target && cuda_runs_later(target))
        c_embed(&t, name, "ptx", arena_printf(&g->arena, "%s/%s.ptx", folder, name));
    else
        text_printf(&t, "#define %s_ptx 0 /* for later devices: there is none */\n", name);
    text_printf(&t, "%s%s%s\n", cuda_host_text, cuda_graph_text, closing_text);
    cuda_write_configures(c, &t);
    text_append(&t, g->code.at ? g->code.at : "", g->code.n);
    text_printf(&t, "double %s_device_seconds(void) { return isamap_driver.seconds; }\n", name);
    text_printf(&t,
                "void %s_device_rounds(int rounds, size_t span) { isamap_driver.rounds = rounds; "
                "isamap_driver.span = span; }\n",
                name);
    interface_c(&t, g->interface, (size_t)g->room.prepared, 0);
    const char *text = arena_strdup(a, t.at);
    text_free(&t);
    return text;
}

struct cuda_source cuda_text(struct arena *a, const struct schedule *s,
                             const struct backend_options *options, const char *folder,
                             struct diags *diags) {
    struct cuda c = {0};
    struct cuda_source source = {0};
    struct cgen *g = &c.g;
    c_begin(g, s, &cuda_dialect, diags);
    g->user = &c;
    c.kernel_of = arena_array(&g->arena, (size_t)s->nplaces + 1, sizeof *c.kernel_of);
    c.inside = arena_array(&g->arena, (size_t)s->nplaces + 1, sizeof *c.inside);
    c.used = arena_array(&g->arena, (size_t)s->nplaces + 1, sizeof *c.used);
    c.alone = arena_array(&g->arena, (size_t)s->nplaces + 1, sizeof *c.alone);
    c.home = arena_array(&g->arena, (size_t)s->nplaces + 1, sizeof *c.home);
    c.turning = arena_array(&g->arena, (size_t)s->nplaces + 1, sizeof *c.turning);
    c.looped = arena_array(&g->arena, (size_t)s->machine->nunits + 1, sizeof *c.looped);
    c.queue = arena_array(&g->arena, (size_t)s->machine->nqueues + 1, sizeof *c.queue);
    c.channels = arena_array(&g->arena, (size_t)s->machine->nsyncs + 1, sizeof *c.channels);
    c.object = arena_array(&g->arena, (size_t)s->machine->nsyncs + 1, sizeof *c.object);
    c.left = arena_array(&g->arena, (size_t)s->machine->nsyncs + 1, sizeof *c.left);
    struct backend_options here = options ? *options : (struct backend_options){0};
    if (here.counted) here.counted = false, here.nstates = 0; /* no rows stay on the device */
    struct interface *interface =
        interface_make(a, s, &here, (uint64_t)(g->room.prepared ^ g->room.workspace << 20));
    interface->device_text = "isamap_driver.said";
    source.interface = g->interface = interface;
    source.target = cuda_target(s, options);
    const char *name = g->interface->name;
    if (g->interface->weights == WEIGHTS_EMBED)
        source.weights = arena_printf(a, "%s/%s.weights", folder, name);
    cuda_section(&c, &s->prepare, arena_printf(&g->arena, "%s_prepare_body", name), false);
    if (!g->failed) cuda_section(&c, &s->run, arena_printf(&g->arena, "%s_run_body", name), true);
    if (!g->failed) source.device = device_part(&c, a);
    if (!g->failed) source.host = host_part(&c, a, folder, source.weights, source.target);
    source.nkernels = c.nkernels;
    struct kernel_use *use = arena_array(a, (size_t)c.nkernels + 1, sizeof *use);
    for (int k = 0; k < c.nkernels; k++) {
        use[k] = c.use[k];
        use[k].name = arena_strdup(a, use[k].name);
        use[k].text = NULL;
    }
    source.use = use;
    text_free(&c.kernels);
    c_end(g);
    return source;
}
