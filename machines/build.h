/* From tree to machine: what build.c (elements), build_instr.c (instructions) and build_value.c
 * (attributes) share. */
#ifndef ISAMAP_MACHINES_BUILD_H
#define ISAMAP_MACHINES_BUILD_H

#include "machines/tree.h"

enum kind {
    KIND_UNIT,
    KIND_MEMORY,
    KIND_BUS,
    KIND_QUEUE,
    KIND_SYNC,
    KIND_STATE,
    KIND_FORMAT,
    KIND_INSTR,
    KIND_CONFIGURE,
    KIND_FEATURE,
    KIND_FALLBACK,
    KIND_PARAM,
    KIND_PRELUDE,
    KIND_BEGIN,
    KIND_END,
    KIND_MEASURE,
    KIND_COUNT
};

struct found {
    const struct node *node;
    const char *id;
    int unit;
};

struct build {
    struct machine *m;
    struct arena *arena;
    struct diags *diags;
    const struct bindings *set;
    const struct parameters *parameters;
    struct found *found[KIND_COUNT];
    int n[KIND_COUNT], cap[KIND_COUNT];
};

/* Each getter reports a wrong value with the attribute's line and then gives the default. */
int64_t build_int(struct build *, const struct node *, const char *attr, int64_t otherwise,
                  int64_t low);
double build_number(struct build *, const struct node *, const char *attr, double otherwise);
struct mexpr *build_expr(struct build *, const struct node *, const char *attr,
                         const char *otherwise); /* NULL: absent or wrong */
bool build_range(struct build *, const struct node *, const char *attr, int64_t *lo, int64_t *hi);
int build_ref(struct build *, const struct node *, const char *attr,
              enum kind); /* -1: absent or unknown */
int *build_refs(struct build *, const struct node *, const char *attr, enum kind, int *n, bool imm);
uint64_t build_features(struct build *, const struct node *, const char *attr);
uint32_t build_types(struct build *, const struct node *);
struct mexpr **build_list(struct build *, const struct node *, const char *attr,
                          int *n); /* comma-separated expressions */
int build_find(const struct build *, enum kind, const char *id);
const char **build_words(struct build *, const char *text, int *n);
enum language build_language(const struct node *);
bool build_pass(const struct node *, enum pass *);
struct emit *build_emits(struct build *, const struct node *parent, int *n);
struct field *build_fields(struct build *, const struct node *, int *n);
void build_instrs(struct build *);
void build_params(struct build *, const struct node *root); /* build_param.c */
void build_feature(struct build *, struct feature *, const struct found *);

#endif
