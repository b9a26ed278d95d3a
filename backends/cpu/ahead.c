#if ISAMAP_WITH_LLVM
/* Lines that the results of a sum are stored to: a processor stores in the order of the program,
 * and one line that is far away keeps all later stores waiting, until their queue is full and the
 * next sums wait as well. So they are asked for before the sum begins, and come while it computes.
 */
#include "backends/cpu/cpu_int.h"

/* Stores behind the sum, with what ends it, in this list; make: builds what asks for their lines.
 */
static double ask_nodes(struct function *f, const struct node *node, int n, bool make) {
    double cycles = 0;
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_LOOP && node[i].loop->kind == LOOP_UNROLLED) {
            const struct loop_node *l = node[i].loop;
            int64_t from, to;
            if (!lv_constant(lv_sx(f, l->lo), &from) || !lv_constant(lv_sx(f, l->hi), &to))
                continue;
            for (int64_t k = from; k < to; k += l->step) {
                f->var[l->var] = lv_const(f, k);
                cycles += ask_nodes(f, l->body, l->nbody, make);
            }
        }
        if (node[i].kind != NODE_ISSUE ||
            !instr_ahead(&f->cpu->machine->instr[node[i].issue->instr], LANGUAGE_LLVM))
            continue;
        turn_cycles(f, &node[i], 1, 1, 0, &cycles);
        if (make) build_ahead(f, node[i].issue);
    }
    return cycles;
}

/* MANY: turns where they are not known; SHARE: of the sum's cycles asking takes one in so many at
 * most. */
int ask_stored(struct function *f, const struct node *node, int n) {
    enum { MANY = 64, SHARE = 16 };
    double sum = 0, ask = 0;
    int end = 0;
    for (; end < n; end++) {
        const struct loop_node *l = node[end].kind == NODE_LOOP ? node[end].loop : NULL;
        bool plain = l && l->kind == LOOP_UNROLLED;
        bool summed = l && l->kind == LOOP_SEQUENTIAL && l->axis >= 0 &&
                      is_summed(f->cpu->schedule->program, l, l->axis, true);
        if (end == 0 && !summed) return 0;
        if (l && !plain && (!summed || ask > 0 || !turn_cycles(f, &node[end], 1, 1, MANY, &sum)))
            break;
        if (!summed) ask += ask_nodes(f, &node[end], 1, false);
    }
    if (ask > 0 && ask * SHARE <= sum) ask_nodes(f, node, end, true);
    return end ? end : 1;
}
#endif
