/* The host's part: what it copies, in which order it launches kernels, the loops around them. */
#include "backends/cuda/cuda_int.h"

#include <string.h>

/* ---- the device's memory: one allocation for arguments, the prepared block, the workspace ---- */
static int64_t aligned(int64_t bytes) {
    return (bytes + 255) / 256 * 256;
}

static bool lives_meet(const struct live_range *live, int p, int q) {
    return live[p].first <= live[p].last && live[q].first <= live[q].last &&
           live[p].first <= live[q].last && live[q].first <= live[p].last;
}

/* A padded temporary that shares its bytes only with what lives at other times: it gets bytes of
 * its own, so that it can be set to zero before all kernels, where it would divide one. */
static bool stands_alone(struct cuda *c, int p) {
    const struct schedule *s = c->g.schedule;
    const struct room *room = &c->g.room;
    if (s->place[p].keep != KEEP_WORKSPACE || !schedule_pads(s, p)) return false;
    for (int q = 0; q < s->nplaces; q++) {
        if (q == p || s->place[q].keep != KEEP_WORKSPACE) continue;
        int64_t end = room->offset[p] + s->place[p].bytes * s->place[p].slots,
                qend = room->offset[q] + s->place[q].bytes * s->place[q].slots;
        if (room->offset[p] < qend && room->offset[q] < end &&
            (lives_meet(room->run_live, p, q) || lives_meet(room->prepare_live, p, q)))
            return false;
    }
    return true;
}

static void plan_memory(struct cuda *c) {
    struct cgen *g = &c->g;
    const struct schedule *s = g->schedule;
    int64_t at = 0;
    for (int p = 0; p < s->nplaces; p++) {
        if (s->place[p].keep != KEEP_ARGUMENT) continue;
        c->home[p] = at;
        if (__builtin_add_overflow(at, aligned(s->place[p].bytes), &at) || at > INT64_MAX / 4)
            c_error(g, "the program's arrays are larger than any memory");
        if (g->failed) return;
    }
    c->prepared = at;
    int64_t work = aligned(at + g->room.prepared), locals = aligned(work + g->room.homes);
    for (int p = 0; p < s->nplaces; p++) {
        if (s->place[p].keep == KEEP_PREPARED) c->home[p] = c->prepared + g->room.offset[p];
        if (s->place[p].keep == KEEP_WORKSPACE) c->home[p] = work + g->room.offset[p];
        if (s->place[p].keep == KEEP_LOCAL) c->home[p] = locals + g->room.offset[p];
    }
    c->bytes = aligned(locals + g->room.local);
    for (int p = 0; p < s->nplaces; p++) {
        c->alone[p] = stands_alone(c, p);
        if (!c->alone[p]) continue;
        c->home[p] = c->bytes;
        c->bytes = aligned(c->bytes + s->place[p].bytes * s->place[p].slots);
    }
}

/* Of an array whose rows are counted by a size, those that are there. */
static const char *argument_bytes(struct cuda *c, const struct place *place) {
    const struct buffer *b = &c->g.schedule->program->buffer[place->buffer];
    if (!b->size || b->extent[0] < 1)
        return arena_printf(&c->g.arena, "%lld", (long long)place->bytes);
    return arena_printf(&c->g.arena, "v%d * %lld", b->size - 1,
                        (long long)(place->bytes / b->extent[0]));
}

static void copy_arguments(struct cuda *c, bool run, bool back) {
    struct cgen *g = &c->g;
    const struct schedule *s = g->schedule;
    for (int p = 0; p < s->nplaces; p++) {
        const struct place *place = &s->place[p];
        if (place->keep != KEEP_ARGUMENT) continue;
        enum role role = s->program->buffer[place->buffer].role;
        bool written = role == ROLE_OUT || role == ROLE_INOUT, given = role == ROLE_CONST || run;
        if (back ? !written || !run : role == ROLE_OUT || !given) continue;
        c_line(g, "isamap_%s(&d, %lld, %s, %s); /* %s */", back ? "fetch" : "send",
               (long long)c->home[p], c_array(g, place->buffer), argument_bytes(c, place),
               place->name);
    }
    if (g->room.prepared > ROOM_HEAD && back != run)
        c_line(g, "isamap_%s(&d, %lld, (unsigned char *)args->prepared + %d, %lld);",
               back ? "fetch" : "send", (long long)c->prepared + ROOM_HEAD, ROOM_HEAD,
               (long long)g->room.prepared - ROOM_HEAD);
}

/* ---- the walk ---- */

static void walk(struct cuda *, const struct node *, int n);

/* A variable of the host, which kernels are given. */
static void enter(struct cuda *c, int var) {
    GROW(&c->g.arena, c->scope, c->nscope, c->cap_scope);
    c->scope[c->nscope++] = var;
}

static void host_loop(struct cuda *c, const struct loop_node *l) {
    struct cgen *g = &c->g;
    c_line(g, "for (int64_t v%d = %s; v%d < %s; v%d += %s) { /* %s */", l->var, c_sx(g, l->lo),
           l->var, c_sx(g, l->hi), l->var, c_integer(g, l->step), g->schedule->var[l->var].name);
    g->indent++;
    enter(c, l->var);
    walk(c, l->body, l->nbody);
    c->nscope--;
    g->indent--;
    c_line(g, "}");
}

static void turn(struct cuda *c, int place) {
    int slots = c->g.schedule->place[place].slots;
    if (slots > 1)
        c_line(&c->g, "s_%d = s_%d + 1 == %d ? 0 : s_%d + 1;", place, place, slots, place);
}

/* Each part of a parallel loop with others in it is a kernel. */
static void grids(struct cuda *c, const struct node *node) {
    const struct loop_node *l = node->loop;
    for (int i = 0, k; i < l->nbody; i += k) {
        struct loop_node part = *l;
        struct node one = {.kind = NODE_LOOP, .loop = &part};
        k = launch_part(c->g.schedule, l, i);
        part.body = &l->body[i];
        part.nbody = k;
        cuda_kernel(c, k == l->nbody ? node : &one, 1);
    }
}

static void walk(struct cuda *c, const struct node *node, int n) {
    enum launch_kind kind;
    for (int i = 0, more; i < n && !c->g.failed; i += more) {
        more = launch_next(c->g.schedule, &node[i], n - i, &kind);
        if (kind == LAUNCH_ONE)
            cuda_kernel(c, &node[i], more);
        else if (kind == LAUNCH_SIGNALS)
            cuda_find_objects(c, &node[i], more, 0); /* no token may be left all the same */
        else if (kind == LAUNCH_GRID)
            grids(c, &node[i]);
        else if (kind == LAUNCH_LOOP)
            host_loop(c, node[i].loop);
        else if (node[i].kind == NODE_ROTATE)
            turn(c, node[i].rotate);
    }
}

/* ---- sections ---- */

/* Slots of homes that turn outside of kernels. */
static void find_turning(struct cuda *c, const struct node *node, int n) {
    for (int i = 0; i < n; i++) {
        if (node[i].kind == NODE_ROTATE && c->g.schedule->place[node[i].rotate].slots > 1 &&
            launch_hosted(c->g.schedule, &node[i])) {
            int k = 0;
            while (k < c->nturning && c->turning[k] != node[i].rotate) k++;
            c->turning[k] = node[i].rotate;
            if (k == c->nturning) c->nturning++;
        }
        if (node[i].kind == NODE_LOOP && node[i].loop->kind != LOOP_PARALLEL &&
            launch_hosted(c->g.schedule, &node[i]))
            find_turning(c, node[i].loop->body, node[i].loop->nbody);
    }
}

static bool zeroed_at(struct cuda *c, const struct section *section, int place, int n) {
    return !c->alone[place] && zeroed_before(c->g.schedule, &c->g.room, section, place, n);
}

/* Something is set to zero before node n, so no kernel goes on from the node before. */
static bool zeroes(struct cuda *c, const struct section *section, int n) {
    for (int p = 0; p < c->g.schedule->nplaces; p++)
        if (zeroed_at(c, section, p, n)) return true;
    return false;
}

static void set_zero(struct cuda *c, int place) {
    c_line(&c->g, "isamap_zero(&d, %lld, %lld);", (long long)c->home[place],
           (long long)c->g.schedule->place[place].bytes);
}

/* Those with bytes of their own, before all nodes. */
static void zero_alone(struct cuda *c, bool run) {
    const struct live_range *live = run ? c->g.room.run_live : c->g.room.prepare_live;
    for (int p = 0; p < c->g.schedule->nplaces; p++)
        if (c->alone[p] && live[p].first <= live[p].last) set_zero(c, p);
}

static void declare_sizes(struct cuda *c) {
    c->nscope = 0;
    c_sizes(&c->g);
    for (int k = 0; k < c->g.schedule->program->nsizes; k++) enter(c, k);
}

/* Their values, which launches depend on. */
static const char *open_sizes(struct cuda *c) {
    const char *text = "0";
    for (int k = 0; k < c->g.schedule->program->nsizes; k++)
        text = k ? arena_printf(&c->g.arena, "%s, v%d", text, k) : "v0";
    return text;
}

void cuda_section(struct cuda *c, const struct section *section, const char *name, bool run) {
    struct cgen *g = &c->g;
    if (!c->bytes) plan_memory(c);
    c->nturning = 0;
    find_turning(c, section->node, section->nnodes);
    c_line(g, "static int %s(const struct %s_args *args%s) {", name, g->interface->name,
           run ? ", void *workspace" : "");
    g->indent++;
    if (run) c_line(g, "(void)workspace;");
    if (!run && !section->nnodes) {
        c_line(g, "(void)args;");
        c_line(g, "return 0;");
    } else {
        c_line(g, "struct isamap_device d;");
        c_line(g, "isamap_open(&d, %s_cubin, %s_ptx, %lld);", g->interface->name,
               g->interface->name, (long long)c->bytes);
        declare_sizes(c);
        copy_arguments(c, run, false);
        c_line(g, "isamap_rounds(&d, %lld);", (long long)c->bytes);
        c_line(g, "const int64_t size[] = {%s};", open_sizes(c));
        c_line(g, "while (isamap_round(&d, %d, size, %d)) {", run, g->schedule->program->nsizes);
        g->indent++;
        for (int k = 0; k < c->nturning; k++)
            c_line(g, "int64_t s_%d = %d;", c->turning[k],
                   g->schedule->place[c->turning[k]].slots - 1);
        zero_alone(c, run);
        for (int n = 0, last; n < section->nnodes; n = last) {
            last = n + 1;
            while (last < section->nnodes && !zeroes(c, section, last)) last++;
            for (int p = 0; p < g->schedule->nplaces; p++)
                if (zeroed_at(c, section, p, n)) set_zero(c, p);
            walk(c, &section->node[n], last - n);
        }
        g->indent--;
        c_line(g, "}");
        copy_arguments(c, run, true);
        c_line(g, "return isamap_close(&d);");
    }
    g->indent--;
    c_line(g, "}");
    text_printf(&g->code, "\n");
}
