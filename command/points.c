#include "command/points.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { STEPS = 8 };

static bool set_error(isamap *im, const char *what, const char *subject) {
    diag_line(&im->diags, "--set", 0, 0,
              "%s '%s', expected NAME=LOW..HIGH or NAME=VALUE,VALUE with K, M or G", what, subject);
    return false;
}

/* Doublings where they lead to the end, else equal steps. */
static void range_values(struct swept *s, int64_t lo, int64_t hi) {
    int64_t v = lo;
    while (v > 0 && v < hi && v <= INT64_MAX / 2) v *= 2;
    if (v == hi && lo < hi)
        for (v = lo; v <= hi && s->n < MOST_VALUES; v *= 2) s->value[s->n++] = v;
    else
        for (int k = 0; k < STEPS; k++) {
            v = lo + (int64_t)llround((double)(hi - lo) * k / (STEPS - 1));
            if (!s->n || v > s->value[s->n - 1]) s->value[s->n++] = v;
        }
}

static bool parse_set(isamap *im, struct arena *a, const struct pair *p, struct swept *s) {
    const char *dots = strstr(p->value, "..");
    int64_t lo, hi;
    *s = (struct swept){.name = p->name};
    if (dots) {
        char *low = arena_strndup(a, p->value, (size_t)(dots - p->value));
        if (!parse_size(low, &lo) || !parse_size(dots + 2, &hi) || hi < lo ||
            hi - lo > INT64_C(1) << 52)
            return set_error(im, "no range:", p->value);
        range_values(s, lo, hi);
        return true;
    }
    char *list = arena_strdup(a, p->value), *rest = NULL;
    for (char *v = strtok_r(list, ",", &rest); v; v = strtok_r(NULL, ",", &rest)) {
        if (s->n == MOST_VALUES) return set_error(im, "too many values in", p->value);
        if (!parse_size(v, &s->value[s->n++])) return set_error(im, "no value:", v);
    }
    return s->n > 0 || set_error(im, "no value:", p->value);
}

bool points_parse(isamap *im, struct arena *a, struct points *p) {
    const struct pairs *set = &im->option.set;
    *p = (struct points){.n = 1};
    if (set->n > MOST_SWEPT) return set_error(im, "too many parameters:", "--set");
    for (int i = 0; i < set->n; i++) {
        if (!parse_set(im, a, &set->at[i], &p->set[p->nset++])) return false;
        p->n *= p->set[i].n;
        if (p->n > MOST_POINTS) return set_error(im, "too many points:", set->at[0].value);
    }
    return true;
}

int64_t points_value(const struct points *p, int point, int set) {
    for (int k = p->nset - 1; k > set; k--) point /= p->set[k].n;
    return p->set[set].value[point % p->set[set].n];
}

static bool is_swept(const struct points *p, const char *name) {
    for (int k = 0; k < p->nset; k++)
        if (strcmp(p->set[k].name, name) == 0) return true;
    return false;
}

struct pairs points_params(const struct points *p, int point, const struct pairs *given,
                           struct arena *a) {
    struct pair *at = arena_array(a, (size_t)(given->n + p->nset) + 1, sizeof *at);
    int n = 0;
    for (int i = 0; i < given->n; i++)
        if (!is_swept(p, given->at[i].name)) at[n++] = given->at[i];
    for (int k = 0; k < p->nset; k++)
        at[n++] =
            (struct pair){p->set[k].name, arena_printf(a, "%" PRId64, points_value(p, point, k))};
    return (struct pairs){at, n, n};
}
