/* What the operators of ai.onnx.ml share. Functions return false, or NULL, after reporting. */
#ifndef ISAMAP_ONNX_OP_ML_H
#define ISAMAP_ONNX_OP_ML_H

#include "onnx/onnx.h"

#ifdef ISAMAP_WITH_ONNX
#include "onnx/onnx_int.h"

bool ml_floats(struct import *, const char *name, const float **out, int *n); /* *n 0: not given */
/* The same of wider floats too: from the attribute `name`, or the tensor `name`_as_tensor. */
bool ml_numbers(struct import *, const char *name, const double **out, int *n);
/* Elements of an attribute that is a tensor of one dimension; *n 0: not given. */
bool ml_tensor(struct import *, const char *name, struct tensor *out, int *n);
/* Input 0 in f32 (if `doubles`, f64 stays): [features] or [rows, features]. */
struct tensor *ml_features(struct import *, bool doubles);
/* The name of a new constant; the data are copied. */
const char *ml_constant(struct import *, const char *suffix, enum type, int ndims,
                        const int64_t *extent, const void *data);
/* The value `to` is that of `scores` after the attribute 'post_transform'. */
bool ml_transform(struct import *, const char *scores, const char *to);
/* The labels that this attribute lists; classes -1: any number. */
bool ml_labels(struct import *, const char *name, int classes, const int64_t **labels);
/* Result 0 is the label whose number `index` holds, or that of the largest score of each row. */
bool ml_label_of(struct import *, const char *index, const char *labels_name);
bool ml_classify(struct import *, const char *scores, const char *labels_name);
const char *
ml_probabilities(struct import *); /* the name of result 1, or of a value that nobody reads */

#endif
#endif
