#include "approaches/approaches.h"

#include <string.h>

enum { MAX_VARS = 64, MAX_EVALUATIONS = 4000 };

static void *open_state(uint64_t seed) {
    (void)seed;
    return NULL;
}

static int choose(void *state, const struct question *q) {
    (void)state;
    int best = 0;
    for (int i = 1; i < q->ncandidates; i++)
        if (q->candidate[i].cost < q->candidate[best].cost) best = i;
    return best;
}

struct search {
    const struct space *space;
    int at[MAX_VARS], best[MAX_VARS];
    double cost;
    int evaluations;
};

static void try_point(struct search *s) {
    if (s->evaluations++ >= MAX_EVALUATIONS) return;
    double c = s->space->cost(s->space->user, s->at);
    if (c >= s->cost) return;
    s->cost = c;
    memcpy(s->best, s->at, sizeof s->best);
}

/* Growth as Roller does: of next value, doubled value and last value of each variable the one that
 * saves most, until none does. */
static bool grow(struct search *s) {
    int from[MAX_VARS];
    double before = s->cost;
    memcpy(from, s->best, sizeof from);
    for (int v = 0; v < s->space->nvars; v++) {
        const int64_t *value = s->space->value[v];
        int n = s->space->nvalues[v], doubled = from[v];
        while (doubled < n - 1 && value[doubled] < 2 * value[from[v]]) doubled++;
        int candidates[] = {from[v] + 1, doubled, n - 1};
        for (int k = 0; k < 3; k++) {
            if (candidates[k] <= from[v] || candidates[k] >= n ||
                (k && candidates[k] == candidates[k - 1]))
                continue;
            memcpy(s->at, from, sizeof s->at);
            s->at[v] = candidates[k];
            try_point(s);
        }
    }
    return s->cost < before;
}

/* One variable to a neighbour, or two in opposite directions. */
static bool improve(struct search *s) {
    int from[MAX_VARS];
    double before = s->cost;
    memcpy(from, s->best, sizeof from);
    for (int v = 0; v < s->space->nvars; v++)
        for (int dv = -2; dv <= 2; dv++) {
            if (dv == 0 || from[v] + dv < 0 || from[v] + dv >= s->space->nvalues[v]) continue;
            memcpy(s->at, from, sizeof s->at);
            s->at[v] = from[v] + dv;
            try_point(s);
            for (int w = 0; w < s->space->nvars; w++) {
                int to = from[w] + (dv > 0 ? -1 : 1);
                if (w == v || to < 0 || to >= s->space->nvalues[w]) continue;
                s->at[w] = to;
                try_point(s);
                s->at[w] = from[w];
            }
        }
    return s->cost < before;
}

static void move(void *state, const struct space *space, int *at) {
    (void)state;
    struct search s = {.space = space};
    if (space->nvars > MAX_VARS) return;
    memcpy(s.best, at, (size_t)space->nvars * sizeof *at);
    s.cost = space->cost(space->user, at);
    while (grow(&s) && s.evaluations < MAX_EVALUATIONS) {
    }
    while (improve(&s) && s.evaluations < MAX_EVALUATIONS) {
    }
    memcpy(at, s.best, (size_t)space->nvars * sizeof *at);
}

const struct approach approach_heuristic = {
    .name = "heuristic",
    .doc = "least analytic cost; spaces by growth and local search",
    .open = open_state,
    .choose = choose,
    .move = move,
    .by_cost = true};

/* What leaves a statement to the fallback only where no instruction takes it, whatever that costs.
 */
static int choose_instruction(void *state, const struct question *q) {
    int best = choose(state, q), found = -1;
    for (int i = 0; i < q->ncandidates && q->kind == QUESTION_COVER; i++)
        if (strcmp(q->candidate[i].text, "fallback") != 0 &&
            (found < 0 || q->candidate[i].cost < q->candidate[found].cost))
            found = i;
    return found >= 0 ? found : best;
}

const struct approach approach_instructions = {
    .name = "instructions",
    .doc = "as heuristic, but whatever an instruction can do it does",
    .open = open_state,
    .choose = choose_instruction,
    .move = move,
    .by_cost = true};
