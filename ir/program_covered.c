/* Is what is read among what was written? Statements that each write every n-th element are many
 * sets with holes, and isl takes exponential time to see that together they have none. So elements
 * are taken in classes by their remainders: within one, no statement leaves holes, and few write
 * anything. */
#include "ir/number.h"
#include "ir/verify_int.h"

#include <isl/aff.h>
#include <isl/space.h>

enum { MOST_CLASSES = 1 << 16 }; /* strides that need more are left to isl */

/* The elements of dimension d that `a` names lie so far apart; 0: it names one. */
static int64_t stride(const struct program *p, const struct access *a, int d) {
    int64_t all = 0;
    for (int x = 0; x < p->naxes; x++)
        if (p->axis[x].extent != 1) all = common_divisor(all, access_coef(p, a, d, x));
    return all < 0 ? -all : all;
}

/* The least number that all strides divide, for each dimension; 1: one class. */
static void find_classes(const struct program *p, const struct written *w, int n, int ndims,
                         int64_t *classes) {
    int64_t total = 1;
    for (int d = 0; d < ndims; d++) {
        classes[d] = 1;
        for (int k = 0; k < n; k++) {
            int64_t s = stride(p, w[k].access, d), times;
            if (s < 2) continue;
            times = s / common_divisor(s, classes[d]);
            if (times > MOST_CLASSES / total / classes[d]) continue;
            classes[d] *= times;
        }
        total *= classes[d];
    }
}

static bool meets(const struct program *p, const struct access *a, int ndims,
                  const int64_t *classes, const int64_t *rest) {
    for (int d = 0; d < ndims; d++) {
        int64_t apart = common_divisor(stride(p, a, d), classes[d]);
        if ((access_coef(p, a, d, p->naxes) - rest[d]) % apart != 0) return false;
    }
    return true;
}

/* { q -> classes·q + rest } */
static isl_multi_aff *members(isl_map *of, int ndims, const int64_t *classes, const int64_t *rest) {
    isl_ctx *ctx = isl_map_get_ctx(of);
    isl_space *space = isl_space_range(isl_map_get_space(of));
    isl_multi_aff *m = isl_multi_aff_identity(isl_space_map_from_set(space));
    for (int d = 0; d < ndims; d++) {
        isl_aff *e = isl_multi_aff_get_aff(m, d);
        e = isl_aff_scale_val(e, isl_val_int_from_si(ctx, classes[d]));
        e = isl_aff_add_constant_val(e, isl_val_int_from_si(ctx, rest[d]));
        m = isl_multi_aff_set_aff(m, d, e);
    }
    return m;
}

static bool class_covered(struct verifier *v, isl_map *wanted, const struct written *w, int n,
                          int ndims, const int64_t *classes, const int64_t *rest) {
    isl_multi_aff *m = members(wanted, ndims, classes, rest);
    wanted = isl_map_preimage_range_multi_aff(isl_map_copy(wanted), isl_multi_aff_copy(m));
    isl_map *all = isl_map_empty(isl_map_get_space(wanted));
    for (int k = 0; k < n; k++)
        if (meets(v->p, w[k].access, ndims, classes, rest))
            all = isl_map_union(all, isl_map_preimage_range_multi_aff(isl_map_copy(w[k].elements),
                                                                      isl_multi_aff_copy(m)));
    isl_bool ok = isl_map_is_subset(wanted, all);
    isl_multi_aff_free(m);
    isl_map_free(wanted);
    isl_map_free(all);
    return ok == isl_bool_true;
}

bool verify_covered(struct verifier *v, isl_map *wanted, const struct written *w, int n,
                    int ndims) {
    int64_t classes[MAX_DIMS], rest[MAX_DIMS] = {0};
    int d = 0;
    find_classes(v->p, w, n, ndims, classes);
    while (d >= 0) {
        if (!class_covered(v, wanted, w, n, ndims, classes, rest)) return false;
        for (d = ndims - 1; d >= 0 && ++rest[d] == classes[d]; d--) rest[d] = 0;
    }
    return true;
}
