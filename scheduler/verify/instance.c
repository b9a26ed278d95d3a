/* Where a walk is: what it may still spend, the instance of a unit, the slot of a place. */
#include "scheduler/verify/verify_int.h"

static const size_t PAGE_LIMIT = (size_t)3 << 30;

bool verify_step(struct verify *v, int64_t n) {
    if (v->stop) return false;
    v->steps -= n < 0 ? 0 : n;
    if (v->steps >= 0 && v->page_bytes < PAGE_LIMIT) return true;
    return verify_limit(v, "more steps than its budget");
}

int64_t verify_instance(const struct verify *v, int unit) {
    if (unit < 0) return 0;
    int64_t above = verify_instance(v, v->m->unit[unit].parent);
    int64_t count = v->m->unit[unit].is_virtual ? VIRTUAL_INSTANCES : unit_instances(v->m, unit);
    return above * count + v->inst[unit];
}

static int *slot_of(struct verify *v, int place) {
    int64_t instance = verify_instance(v, v->m->memory[v->s->place[place].memory].unit);
    return pages_get(&v->slots, (uint64_t)place << 40 | (uint64_t)instance, NULL);
}

void verify_rotate(struct verify *v, int place) {
    int *slot = slot_of(v, place);
    *slot = *slot % v->s->place[place].slots + 1;
}

int verify_slot(struct verify *v, int place) {
    int slot = *slot_of(v, place);
    return slot ? slot - 1 : 0;
}
