/* What coverings find out on their way, by what was decided until then. Covers of one program are
 * made again with other answers; as long as the answers are the same, so is all that follows from
 * them: rewrites with their prices, and the ways of the statement that is decided next. */
#include "mapper/mapper_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

struct owned {
    struct program *program;
    struct owned *next;
};

struct fork {
    struct arena arena; /* of what is known */
    void *known;        /* NULL: nothing yet */
    struct owned *owned;
    struct plan *plan; /* made here */
    const char *key;   /* of a root */
    int answer;        /* to the question before it */
    struct fork *next, *first;
};

static struct fork *fork_new(struct fork **list) {
    struct fork *f = memory_array(1, sizeof *f);
    arena_init(&f->arena);
    f->next = *list;
    *list = f;
    return f;
}

struct fork *fork_root(const struct needles *needles, const char *key) {
    struct fork **roots = &needles->kept->forks, *f = *roots;
    while (f && strcmp(f->key, key) != 0) f = f->next;
    if (f) return f;
    f = fork_new(roots);
    f->key = arena_strdup(&f->arena, key);
    return f;
}

void fork_follow(struct covering *c, int answer) {
    struct fork *f = c->fork ? c->fork->first : NULL;
    if (!c->fork) return;
    while (f && f->answer != answer) f = f->next;
    if (!f) f = fork_new(&c->fork->first);
    f->answer = answer;
    c->fork = f;
}

struct arena *fork_arena(struct covering *c) {
    return c->fork ? &c->fork->arena : &c->scratch;
}

void *fork_known(const struct covering *c) {
    return c->fork ? c->fork->known : NULL;
}

void fork_keep(struct covering *c, void *known) {
    if (c->fork) c->fork->known = known;
}

void fork_own(struct covering *c, struct program *p) {
    if (!c->fork || !p) return;
    struct owned *o = arena_alloc(&c->fork->arena, sizeof *o);
    *o = (struct owned){p, c->fork->owned};
    c->fork->owned = o;
}

bool fork_own_plan(struct covering *c, struct plan *p) {
    if (c->fork) c->fork->plan = p;
    return c->fork != NULL;
}

void forks_close(struct fork *f) {
    while (f) {
        struct fork *next = f->next;
        forks_close(f->first);
        for (struct owned *o = f->owned; o; o = o->next) program_free(o->program);
        plan_free(f->plan);
        arena_free(&f->arena);
        free(f);
        f = next;
    }
}
