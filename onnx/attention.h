/* Inside onnx/: attention over heads, wherever they lie. */
#ifndef ISAMAP_ONNX_ATTENTION_H
#define ISAMAP_ONNX_ATTENTION_H

#include "onnx/onnx_int.h"
#include <onnx.pb-c.h>

/* Axes of heads: batch, head of keys and values, which of the heads of queries that share those,
 * place in the sequence, element of the head. */
enum { AT_BATCH, AT_HEAD, AT_GROUP, AT_PLACE, AT_DEPTH, AT_COUNT };

/* A tensor seen as heads: the index of each of its dimensions is an affine function of the axes. */
struct heads {
    struct tensor *t;
    int64_t coef[MAX_DIMS][AT_COUNT], at[MAX_DIMS];
};

/* Heads from `offset` on inside the last of three dimensions; group: queries that share a head,
 * 1 for keys and values themselves */
struct heads heads_merged(struct tensor *, int64_t group, int64_t depth, int64_t offset);
struct heads heads_apart(struct tensor *, int64_t group);   /* [batch, head, place, depth] */
struct heads heads_stacked(struct tensor *, int64_t which); /* [which, batch, head, place, depth] */
/* The same with `first + step * i` in place of the index i of an axis. */
struct heads heads_from(struct heads, int axis, int64_t step, int64_t first);
const char *heads_element(struct import *, struct heads, const char *const *axis);
void heads_axes(struct import *, const int64_t *extent, const char **axis);
void heads_copy(struct import *, struct heads to, struct heads from, const int64_t *extent);

/* ONNX Runtime's score of a key that a row may not attend to */
enum { LEFT_OUT = -65504 };

struct attention {
    struct heads q, k, v;
    int64_t extent[AT_COUNT]; /* of the queries */
    int64_t length, depth_v;  /* keys; elements of a value */
    double scale;
    double softcap;         /* 0: none; else scores become softcap * tanh(score / softcap) */
    bool causal;            /* row i attends to keys up to past + i */
    double outside;         /* the score of other keys */
    int64_t past, window;   /* window > 0: to so many keys at most */
    struct tensor *past_of; /* past of each sequence, i64, where it is data */
    struct tensor *bias;    /* added to the scores, which it is broadcast to, or NULL */
    struct tensor *mask;    /* integers: lengths, or 1 for what counts; NULL: none */
    double filter;          /* added where the mask has 0 */
    bool none_is_zero;      /* a row without any key has weights of 0 */
    struct tensor *sink;    /* a score of each head that takes weight and gives no value, or NULL */
    bool smooth;            /* the same, of 0 for all heads */
    bool apart;             /* the result is [batch, heads, place, depth_v] */
    struct tensor *shown;   /* the scores are a result, too; NULL: they are not */
    int stage;              /* of these: enum attention_stage */
};
enum attention_stage { SCORES_SCALED, SCORES_CAPPED, SCORES_ADDED, SCORES_WEIGHTS };
/* The node's result, [batch, place, heads * depth_v] if not `apart` */
bool attention_lower(struct import *, struct attention *);

/* Rotary positions: pairs of elements turned by the angles whose cosines and sines are in `cos` and
 * `sin`, [batch or 1, place, half]; elements behind 2 * half stay. */
struct rotary {
    struct tensor *cos, *sin;
    int64_t half;
    bool interleaved; /* a pair stands together; else its second element is `half` behind */
};
bool rotary_lower(struct import *, const struct rotary *, struct heads to, struct heads from,
                  const int64_t *extent);
/* Rows of the two tables for these positions (a value's name, of [batch, place]). */
bool rotary_rows(struct import *, const char *cos, const char *sin, const char *positions,
                 struct rotary *);

#endif
