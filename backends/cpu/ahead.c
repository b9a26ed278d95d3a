#if ISAMAP_WITH_LLVM
/* Lines that the results of a sum are stored to: a processor stores in the order of the program,
 * and one line that is far away keeps all later stores waiting, until their queue is full and the
 * next sums wait as well. So they are asked for before the sum begins, and come while it computes.
 * So does what follows the sum and reads from far away. */
#include "backends/cpu/asked.h"

/* Stores behind the sum, with what ends it and is read there: asked for, if that takes no longer.
 */
static void ask_behind(struct function *f, const struct node *node, int n, double cycles) {
    struct asked x;
    asked_open(&x, f, node, n);
    x.own = x.stores = true;
    bool ok = asked_meet(&x, MET_NOW);
    for (int i = 0; i < x.n; i++) {
        struct access_at *a = &x.at[i];
        a->next = a->now;
        a->asked = !a->reads || (double)f->cpu->schedule->place[a->place].bytes > x.near;
    }
    if (ok && x.line > 0 && asked_once(&x) <= cycles) asked_meet(&x, MET_MAKE);
    asked_close(&x);
}

/* MANY: turns where they are not known; SHARE: of the sum's cycles asking takes one in so many at
 * most. */
int ask_stored(struct function *f, const struct node *node, int n) {
    enum { MANY = 64, SHARE = 16 };
    double sum = 0;
    int end = 0, behind = 0;
    for (; end < n; end++) {
        const struct loop_node *l = node[end].kind == NODE_LOOP ? node[end].loop : NULL;
        bool plain = l && l->kind == LOOP_UNROLLED;
        bool summed = l && l->kind == LOOP_SEQUENTIAL && l->axis >= 0 &&
                      is_summed(f->cpu->schedule->program, l, l->axis, true);
        if (end == 0 && !summed) return 0;
        if (l && !plain && (!summed || behind || !turn_cycles(f, &node[end], 1, 1, MANY, &sum)))
            break;
        if (!summed && !behind) behind = end;
    }
    if (behind) ask_behind(f, node + behind, end - behind, sum / SHARE);
    return end ? end : 1;
}
#endif
