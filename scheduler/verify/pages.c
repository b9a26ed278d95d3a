#include "scheduler/verify/verify_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

void pages_init(struct pages *p, size_t bytes, size_t *total) {
    *p = (struct pages){.bytes = bytes, .total = total};
}

/* Keys often differ in their upper bits alone (a place, a statement), so these come down first. */
static size_t pages_slot(const struct pages *p, uint64_t key) {
    uint64_t h = (key ^ key >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(h ^ h >> 32) & (p->cap - 1);
    while (p->page[at] && p->key[at] != key) at = (at + 1) & (p->cap - 1);
    return at;
}

static void pages_grow(struct pages *p) {
    struct pages old = *p;
    p->cap = old.cap ? 2 * old.cap : 64;
    p->key = memory_array(p->cap, sizeof *p->key);
    p->page = memory_array(p->cap, sizeof *p->page);
    for (size_t k = 0; k < old.cap; k++) {
        if (!old.page[k]) continue;
        size_t at = pages_slot(p, old.key[k]);
        p->key[at] = old.key[k];
        p->page[at] = old.page[k];
    }
    free(old.key);
    free(old.page);
}

void *pages_find(const struct pages *p, uint64_t key) {
    if (p->last && p->last_key == key) return p->last;
    return p->cap ? p->page[pages_slot(p, key)] : NULL;
}

void *pages_get(struct pages *p, uint64_t key, bool *fresh) {
    if (fresh) *fresh = false;
    if (p->last && p->last_key == key) return p->last;
    if (2 * p->n >= p->cap) pages_grow(p);
    size_t at = pages_slot(p, key);
    if (!p->page[at]) {
        p->page[at] = memory_array(1, p->bytes);
        p->key[at] = key;
        p->n++;
        *p->total += p->bytes;
        if (fresh) *fresh = true;
    }
    p->last_key = key;
    return p->last = p->page[at];
}

void pages_free(struct pages *p) {
    for (size_t k = 0; k < p->cap; k++) free(p->page[k]);
    free(p->key);
    free(p->page);
    *p = (struct pages){.bytes = p->bytes, .total = p->total};
}
