/* How often each element was written, in which step of the recurrences around, and which instances
 * were executed. */
#include "scheduler/verify/verify_int.h"

int64_t step_at(const struct recurrence *r, const int64_t *at) {
    return r->reverse ? r->steps - 1 - at[r->axis] : at[r->axis];
}

uint32_t step_number(const struct verify *v, int stmt, const int64_t *at) {
    uint64_t number = 0, scale = 1;
    for (int k = v->recurrence_of[stmt]; k >= 0; k = v->recurrence[k].parent) {
        const struct recurrence *r = &v->recurrence[k];
        number += scale * (uint64_t)step_at(r, at);
        scale *= (uint64_t)r->steps;
    }
    return (uint32_t)number;
}

/* Counts of one step stand after those of the step before. */
static uint64_t count_number(const struct verify *v, int stmt, const int64_t *at, int64_t element) {
    uint64_t step = v->recurrence_of[stmt] >= 0 ? step_number(v, stmt, at) : 0;
    return step * (uint64_t)v->p->buffer[v->p->stmt[stmt].dst.buffer].elements + (uint64_t)element;
}

uint32_t *count_at(struct verify *v, int stmt, const int64_t *at, int64_t element) {
    uint64_t n = count_number(v, stmt, at, element);
    uint32_t *page = pages_get(&v->counts, (uint64_t)stmt << 48 | n / PAGE_ENTRIES, NULL);
    return &page[n % PAGE_ENTRIES];
}

bool counts_page(const struct verify *v, int stmt, int64_t element) {
    return pages_find(&v->counts, (uint64_t)stmt << 48 | (uint64_t)(element / PAGE_ENTRIES)) !=
           NULL;
}

uint32_t count_of(const struct verify *v, int stmt, const int64_t *at, int64_t element) {
    uint64_t n = count_number(v, stmt, at, element);
    const uint32_t *page = pages_find(&v->counts, (uint64_t)stmt << 48 | n / PAGE_ENTRIES);
    return page ? page[n % PAGE_ENTRIES] : 0;
}

bool instance_mark(struct verify *v, int stmt, uint64_t number) {
    uint64_t bits = 8 * PAGE_ENTRIES;
    unsigned char *page = pages_get(&v->instances, (uint64_t)stmt << 48 | number / bits, NULL);
    unsigned char bit = (unsigned char)(1u << number % 8);
    unsigned char *at = &page[number % bits / 8];
    bool was = *at & bit;
    *at |= bit;
    return !was;
}

bool instance_marked(const struct verify *v, int stmt, uint64_t number) {
    uint64_t bits = 8 * PAGE_ENTRIES;
    const unsigned char *page = pages_find(&v->instances, (uint64_t)stmt << 48 | number / bits);
    return page && (page[number % bits / 8] >> number % 8 & 1);
}

bool instance_live(struct verify *v, int stmt, uint64_t number, uint32_t life) {
    uint32_t *page = pages_get(&v->life, (uint64_t)stmt << 48 | number / PAGE_ENTRIES, NULL);
    uint32_t was = page[number % PAGE_ENTRIES];
    page[number % PAGE_ENTRIES] = life;
    return was != life;
}
