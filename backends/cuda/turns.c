/* Blocks that stay: a kernel with roles may have more tiles than blocks stand on the device at
 * once. A block then takes several, and nobody waits between them: the role that brings operands
 * goes on with the next tile while the others still store the last one. What a tile's tokens are
 * given at its beginning and taken at its end stays where it is from one tile to the next. Tiles
 * are taken in bands, so that what runs at a time reads few rows and columns together. */
#include "backends/cuda/cuda_int.h"

#include <math.h>
#include <string.h>

/* Blocks that stand on the device at once: the total of the nearest unit around the queues with
 * threads that states one; 0: none does. */
static int64_t at_once(const struct machine *m, int unit) {
    for (int u = unit; u > 0; u = m->unit[u].parent)
        if (m->unit[u].total > 0) return m->unit[u].total;
    return 0;
}

static const struct loop_node *innermost(const struct cuda *c, const struct node *node) {
    const struct loop_node *l = NULL;
    while (node->kind == NODE_LOOP) {
        bool grid = false;
        for (int k = 0; k < 3; k++) grid |= c->grid[k] == node->loop;
        if (!grid) break;
        l = node->loop;
        if (l->nbody != 1) break;
        node = l->body;
    }
    return l;
}

/* ---- what is carried from one tile to the next ---- */

/* Signals of the syncs alone that stand in the body itself; false: there are others. */
static bool only_signals(const struct node *node, bool pops) {
    if (node->kind != NODE_SYNC) return false;
    const struct signals *s = node_signals(node);
    return pops ? s->npops > 0 && !s->npushes : s->npushes > 0 && !s->npops;
}

static bool keep(struct cuda *c, const struct node *node, bool pops) {
    const struct signals *s = node_signals(node);
    int n = pops ? s->npops : s->npushes;
    const struct signal *at = pops ? s->pop : s->push;
    for (int k = 0; k < n; k++) {
        if (at[k].rotating || c->g.machine->sync[at[k].sync].memory < 0 ||
            c->ncarried == MAX_CARRIED)
            return false;
        c->carried[c->ncarried++] = &at[k];
    }
    return true;
}

/* The first half of what is carried is given, the second half taken: the same channels. */
static bool pairs(const struct cuda *c, int given) {
    bool taken[MAX_CARRIED] = {false};
    if (!given || c->ncarried != 2 * given) return false;
    for (int i = 0; i < given; i++) {
        int k = given;
        while (k < c->ncarried && (taken[k] || c->carried[k]->sync != c->carried[i]->sync ||
                                   c->carried[k]->channel != c->carried[i]->channel))
            k++;
        if (k == c->ncarried) return false;
        taken[k] = true;
    }
    return true;
}

static bool is_carried_sync(const struct cuda *c, int sync) {
    for (int k = 0; k < c->ncarried; k++)
        if (c->carried[k]->sync == sync) return true;
    return false;
}

/* Queues with threads wait for such a token before they fill shared memory, in each turn of each
 * loop; nobody else writes to it. */
static bool fills_wait(struct cuda *c, const struct node *node, int n, bool waited) {
    const struct machine *m = c->g.machine;
    for (int i = 0; i < n; i++) {
        const struct signals *s = node_signals(&node[i]);
        if (node[i].kind == NODE_FALLBACK || node[i].kind == NODE_CONFIGURE) return false;
        if (node[i].kind == NODE_ROTATE) waited = false;
        for (int k = 0; s && k < s->npops; k++)
            waited |= is_carried_sync(c, s->pop[k].sync) && s->pop[k].rotating;
        if (node[i].kind == NODE_LOOP &&
            !fills_wait(c, node[i].loop->body, node[i].loop->nbody, waited))
            return false;
        if (node[i].kind != NODE_ISSUE) continue;
        const struct issue_node *issue = node[i].issue;
        const struct instr *in = &m->instr[issue->instr];
        bool apart = m->queue[in->queue].threads > 0;
        for (int o = 0; o < in->noperands; o++) {
            int place = issue->arg[o].place;
            bool inside = place >= 0 && cuda_is_shared(c, place);
            if (inside && in->operand[o].role != ROLE_IN && !(apart && waited)) return false;
        }
    }
    return true;
}

/* What is given stands before all else, what is taken is the last of its role. */
static bool find_carried(struct cuda *c, const struct loop_node *l) {
    int i = 0, given;
    c->ncarried = 0;
    for (; i < l->nbody && only_signals(&l->body[i], false); i++)
        if (!keep(c, &l->body[i], false)) return false;
    given = c->ncarried;
    int first = i, role = -1;
    for (; i < l->nbody; i++) {
        if (only_signals(&l->body[i], true)) {
            int queue = c->g.machine->queue[l->body[i].sync.queue].role;
            if ((role >= 0 && role != queue) || !keep(c, &l->body[i], true)) return false;
            role = queue;
            continue;
        }
        c->role = role;
        bool behind = role >= 0 && cuda_mine(&c->g, &l->body[i]);
        c->role = -1;
        if (behind) return false;
    }
    return pairs(c, given) && fills_wait(c, l->body + first, l->nbody - first, false);
}

/* Each block has one tile at most, whatever is not known yet. */
static bool one_each(const struct cuda *c, int64_t blocks) {
    double tiles = 1;
    for (int k = 0; k < 3; k++) {
        const struct loop_node *l = c->grid[k];
        int64_t lo, hi;
        if (!l) continue;
        if (!sx_constant(l->lo, &lo) || !sx_constant(l->hi, &hi)) return false;
        tiles *= ceil((double)(hi - lo) / (double)l->step);
    }
    return tiles <= (double)blocks;
}

void cuda_find_turns(struct cuda *c, const struct node *node, int n) {
    const struct loop_node *l = n == 1 && c->nroles ? innermost(c, node) : NULL;
    c->stays = 0;
    c->ncarried = 0;
    if (!l || c->grid[2]) return;
    if (find_carried(c, l)) c->stays = at_once(c->g.machine, c->g.machine->queue[c->queue[0]].unit);
    if (one_each(c, c->stays)) c->stays = 0;
    if (!c->stays) c->ncarried = 0;
}

bool cuda_carries(const struct cuda *c, const struct signal *s) {
    for (int k = 0; k < c->ncarried; k++)
        if (c->carried[k] == s) return true;
    return false;
}

/* ---- text ---- */

static const char *trips_text(struct cgen *g, const struct loop_node *l) {
    const char *step = c_integer(g, l->step);
    return arena_printf(&g->arena, "(%s - %s + %s - 1) / %s", c_sx(g, l->hi), c_sx(g, l->lo), step,
                        step);
}

static const char *turns_text(struct cuda *c) {
    struct cgen *g = &c->g;
    const char *text = NULL;
    for (int k = 0; k < 3; k++) {
        if (!c->grid[k]) continue;
        const char *trips = trips_text(g, c->grid[k]);
        text = text ? arena_printf(&g->arena, "%s * (%s)", text, trips)
                    : arena_printf(&g->arena, "(%s)", trips);
    }
    return text;
}

/* As few as take no more turns than all that have room would. */
const char *cuda_blocks(struct cuda *c) {
    const char *turns = turns_text(c);
    long long most = (long long)c->stays;
    return arena_printf(&c->g.arena,
                        "(%s + (%s + %lld) / %lld - 1) / isamap_max(1, (%s + %lld) / %lld)", turns,
                        turns, most - 1, most, turns, most - 1, most);
}

/* Rows of tiles in a band. So many blocks at once have about stays / rows columns of them; rows and
 * columns that are read together are least where both are as long. Powers of two, so that bands
 * divide what often are such numbers. */
static int64_t band(const struct cuda *c) {
    double rows = (double)c->grid[1]->step, columns = (double)c->grid[0]->step, least = INFINITY;
    int64_t best = 1;
    for (int64_t n = 1; n <= c->stays; n *= 2) {
        double read = (double)n * rows + ceil((double)c->stays / (double)n) * columns;
        if (read < least) best = n, least = read;
    }
    return best;
}

static void turn_variable(struct cgen *g, const struct loop_node *l, const char *number) {
    c_line(g, "const int64_t v%d = %s + %s * %s; /* %s */", l->var, c_sx(g, l->lo), number,
           c_integer(g, l->step), g->schedule->var[l->var].name);
}

void cuda_turns_loop(struct cgen *g, const struct loop_node *outer) {
    struct cuda *c = g->user;
    const struct loop_node *x = c->grid[0], *y = c->grid[1];
    const struct node node = {.kind = NODE_LOOP, .loop = (struct loop_node *)outer};
    const struct loop_node *l = innermost(c, &node);
    c_line(g, "{ /* tiles, in turns */");
    g->indent++;
    c_line(g, "const int64_t turns = %s;", turns_text(c));
    c_line(g, "#pragma unroll 1");
    c_line(g, "for (int64_t turn = blockIdx.x; turn < turns; turn += gridDim.x) {");
    g->indent++;
    if (x && y) {
        c_line(g, "const int64_t columns = %s, rows = turns / columns;", trips_text(g, x));
        c_line(
            g,
            "const int64_t band = turn / (columns * %lld) * %lld, among = turn - band * columns;",
            (long long)band(c), (long long)band(c));
        c_line(g, "const int64_t high = rows - band < %lld ? rows - band : %lld;",
               (long long)band(c), (long long)band(c));
        turn_variable(g, y, "(band + among % high)");
        turn_variable(g, x, "(among / high)");
    } else {
        turn_variable(g, x ? x : y, "turn");
    }
    c_walk(g, l->body, l->nbody);
    g->indent--;
    c_line(g, "}");
    g->indent--;
    c_line(g, "}");
}
