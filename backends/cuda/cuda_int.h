/* Inside the cuda backend: a schedule becomes kernels in CUDA C and, in C, the host's part that launches them. The walk of a schedule's
 * tree, its expressions, issues and fallbacks are the c backend's (backends/c/c_int.h); what is here is where a kernel begins and ends. */
#ifndef ISAMAP_BACKENDS_CUDA_CUDA_INT_H
#define ISAMAP_BACKENDS_CUDA_CUDA_INT_H

#include "backends/c/c_int.h"
#include "scheduler/schedule/launches.h"

/* Threads of a block that executes nothing but a dealt statement: every device takes as many. */
enum { DEALT_THREADS = 256 };

/* Bytes of registers of a multiprocessor, on every device that CUDA C has now. */
enum { MULTIPROCESSOR_REGISTERS = 256 << 10 };

/* What a kernel takes of a block, beside the registers, which the assembler counts. */
struct kernel_use {
    const char *name, *text; /* text: what makes it another kernel (alike.c) */
    int64_t threads, shared; /* bytes, of which `memory` has `limit` */
    const char *memory;      /* NULL: none */
    int64_t limit, registers; /* registers: bytes that the threads of a block have together; 0: not known */
    int64_t shares;           /* bytes of them that the roles are to have, where each says so; 0 */
};

/* What a kernel is given: a place ('p'), a variable or size ('v'), a slot ('s'), an object of a state ('o') of this number. */
struct given {
    char kind;
    int number;
};

/* An object of a state that the host makes before a launch, and what its fields are there. */
struct made {
    int state;
    const char *values; /* arguments of the configure's function, each with a comma before it */
};

/* An issue that completes at a token with an object, and the push of that token; NULL: it cannot be told. */
enum { MAX_LANDING_POPS = 8 };
struct landing {
    const struct issue_node *issue;
    const struct signal *push;
    int turned; /* times that the place of its channel has turned by then */
    const struct signal *pop[MAX_LANDING_POPS]; /* what must be waited for before, though it is taken later */
    int pop_turned[MAX_LANDING_POPS], npops;
};

enum { MAX_CARRIED = 64 };

struct cuda {
    struct cgen g;       /* its code: the host's part; while a kernel is written: the kernel's body */
    struct text kernels; /* the functions of the device */
    int nkernels, cap_kernels;
    struct kernel_use *use; /* [nkernels] */
    int nlaunches;       /* that were written; those of equal kernels have one name */
    int *kernel_of;      /* [nplaces] 1 + the launch that uses the local place; 0: none yet */
    bool *inside;        /* [nplaces] lies in a block or in its threads */
    bool *used;          /* [nplaces] by the kernel that is written */
    bool *looped;        /* [machine.nunits] a parallel loop over the unit is around */
    const struct loop_node *grid[3]; /* of the kernel that is written: loops that the grid goes over in x, y and z; NULL */
    int64_t stays; /* of the kernel that is written: blocks that take its tiles in turns; 0: each has one */
    const struct signal *carried[MAX_CARRIED]; /* given before a tile and taken behind it, which stay from one to the next */
    int ncarried;
    int *queue, nroles;    /* of the kernel that is written: queues with threads of their own */
    int role;            /* the queue whose threads' part is written; -1: the part of the units' threads */
    int64_t together, own; /* threads of all roles, and of the one whose part is written */
    int *channels;       /* [nsyncs] of a sync with objects in shared memory; 0: the kernel does not use it */
    bool shares;         /* the kernel that is written has copies in shared memory */
    int64_t budget;      /* of the kernel that is written: bytes of registers that all its roles are to have; 0: not all of them say so */
    int64_t *object;     /* [nsyncs] where its objects stand */
    int64_t *left;       /* [nsyncs] tokens that were pushed and not popped */
    struct made *made;
    int nmade, cap_made;
    struct landing *landing; /* of the kernel that is written */
    int nlandings, cap_landings;
    int *scope, nscope, cap_scope; /* variables of the host's loops */
    int *turning, nturning;        /* homes whose slots the host turns */
    bool *alone;         /* [nplaces] has bytes of its own, which are zero before all nodes of a section */
    int64_t *home;       /* [nplaces] bytes from the start of the device's memory */
    int64_t prepared, bytes; /* where the prepared block starts; of all */
};

extern const struct c_dialect cuda_dialect;

/* ---- places.c ---- */
void cuda_mark_used(struct cuda *, const struct node *, int n);
void cuda_own_locals(struct cuda *, const struct node *, int n, bool grid);
int64_t cuda_declare_shared(struct cuda *);
void cuda_declare_places(struct cuda *);

bool cuda_is_shared(struct cuda *, int place); /* it lies in shared memory */

/* ---- turns.c ---- */
void cuda_find_turns(struct cuda *, const struct node *, int n); /* what `stays` is for these nodes, once their grid and roles are known */
bool cuda_carries(const struct cuda *, const struct signal *);
const char *cuda_blocks(struct cuda *); /* how many take the tiles in turns, as text of the host */
void cuda_turns_loop(struct cgen *, const struct loop_node *outer); /* over the tiles of a block, outer: the grid's outermost loop */

/* ---- alike.c ---- */
/* The number of a kernel with this body, written unless there is an equal one, and what a launch gives it. */
int cuda_write_kernel(struct cuda *, const char *bounds, const char *body, const struct given **, int *n);

/* ---- small.c ---- */
int64_t cuda_points(struct cuda *, const struct fallback_node *); /* that are dealt to threads */
int64_t cuda_small_threads(const struct cuda *, const struct node *, int n);

/* ---- roles.c ---- */
void cuda_find_roles(struct cuda *, const struct node *, int n);
/* What the role whose part is written begins with; returns the registers of each of its threads, 0: as many as the compiler gives them. */
int64_t cuda_begin_role(struct cuda *, const struct node *, int n);
bool cuda_mine(struct cgen *, const struct node *); /* the role whose part is written executes it */
int64_t cuda_find_objects(struct cuda *, const struct node *, int n, int64_t at);
void cuda_begin_objects(struct cuda *);
void cuda_begin_phases(struct cuda *);
void cuda_signal(struct cgen *, const struct signal *, bool pop);

const char *cuda_object(struct cgen *, const struct signal *, int turned); /* the address of the channel's object once its place has turned so often, as text */

/* ---- objects.c ---- */
void cuda_find_landings(struct cuda *, const struct node *, int n);
int cuda_handles(struct cgen *, const struct issue_node *, struct c_handle *);
const char *cuda_object_type(struct cuda *, int object); /* of c.made[], in both parts */
void cuda_declare_states(struct cuda *, struct text *);   /* their types */
void cuda_write_configures(struct cuda *, struct text *); /* for the host: types, and a function for each configure */
void cuda_make_object(struct cuda *, int object);         /* as o_N, before a launch */

/* One node, or several that follow each other, as a kernel and its launch. */
void cuda_kernel(struct cuda *, const struct node *, int n);
void cuda_section(struct cuda *, const struct section *, const char *name, bool run);

/* What the compiler calls the device: `target` of the options, or of the features that the schedule needs; NULL. */
const char *cuda_target(const struct schedule *, const struct backend_options *);
/* Code for "sm_90a" runs on capability 9.0 alone; for "sm_90", by way of PTX, on later ones too. */
bool cuda_runs_later(const char *target);
/* What is compiled: for the device, and for the host (the name of the cubin's symbol stands in it). */
struct cuda_source {
    const char *device, *host; /* NULL: an error was reported */
    const char *target; /* what NVRTC calls the device; NULL: the machine does not say so */
    const struct interface *interface;
    const char *weights; /* embedded: the file that the host's part includes; NULL */
    const struct kernel_use *use;
    int nkernels;
};
struct cuda_source cuda_text(struct arena *, const struct schedule *, const struct backend_options *,
                             const char *folder, struct diags *);
extern const char *const cuda_graph_text;  /* then: a section's launches as one (graph.c) */

/* ---- the compiler of the toolkit, loaded when it is needed (nvrtc.c) ---- */
struct device_code {
    char *cubin, *ptx; /* ptx ends with a 0, which counts */
    size_t ncubin, nptx;
    const char *log; /* what it says of registers */
};
/* False after reporting: there is no compiler, or the text is wrong. */
bool cuda_compile(struct arena *, const char *text, const char *name, const char *architecture,
                  struct device_code *, struct diags *);
/* Kernels with threads, registers, what they spill and shared memory: a line each; and a warning for what does not fit. */
void cuda_resources(const struct machine *, const struct cuda_source *, const char *log,
                    struct text *report, struct diags *);

#endif
