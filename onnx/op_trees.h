/* Ensembles of trees, of all three operators: how they are kept, and what they become. */
#ifndef ISAMAP_ONNX_OP_TREES_H
#define ISAMAP_ONNX_OP_TREES_H

#include "onnx/op_ml.h"

#ifdef ISAMAP_WITH_ONNX
struct trees {
    struct import *im;
    int n, roots, levels; /* nodes, leaves among them; trees; edges from a root to a leaf at most */
    int *height;          /* [n] edges to a leaf at most */
    struct key *key;      /* [n] sorted; of nodes that are found by tree and number */
    int32_t *feature, *yes, *no, *tracks; /* [n]; leaves lead to themselves */
    int32_t *root;                        /* [roots] the highest trees first */
    const double *value;
    const char *compare; /* x compare value: yes */
    bool missing;        /* NaNs lead to `yes` somewhere */
    bool shared;         /* leaves may be reached from several nodes, and roots are given */
    struct tensor *x;    /* [rows, features] of f32 or f64, in which all is computed */
    int64_t scores;      /* for each row */
    double *weight;      /* [n][scores] */
    int32_t *which;      /* [n]; not NULL: `weight` is [n] and all to this score */
};

/* How the trees' results are put together. */
enum trees_how { TREES_AVERAGE, TREES_SUM, TREES_LEAST, TREES_MOST };

void trees_tables(struct trees *); /* of t->n nodes, all zero */
/* Roots, heights and levels; each node is reached once. False after reporting. */
bool trees_walk(struct trees *);
/* What leaves add: entry i `weight` to a score of the node at a place. Table `of`_ids had them.
 * False after reporting. */
bool trees_weigh(struct trees *, const char *of, int n, const int32_t *place, const int64_t *score,
                 const double *weight);
/* The name of a value [rows, scores] of x's type, with `base` (NULL: 0) added; NULL after
 * reporting. */
const char *trees_emit(struct trees *, const double *base, enum trees_how);
#endif
#endif
