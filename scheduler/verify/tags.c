/* What each byte of each memory holds. */
#include "scheduler/verify/verify_int.h"

#include <inttypes.h>
#include <string.h>

struct tag tag_element(int buffer, int64_t element, int writer, uint32_t count, enum type type) {
    return (struct tag){.id = (uint64_t)buffer << ELEMENT_BITS | (uint64_t)element,
                        .count = count,
                        .writer = (int16_t)writer,
                        .kind = TAG_DATA,
                        .type = (uint8_t)type};
}

/* Zero has no type: a zeroed memory is zero in all. */
struct tag tag_const(enum type type, union value x) {
    struct tag t = {.kind = TAG_CONST, .type = (uint8_t)type};
    memcpy(&t.id, &x, sizeof t.id);
    return t;
}

static struct tag inside(struct tag first, uint32_t granules) {
    if (first.kind != TAG_DATA && (first.kind != TAG_CONST || first.id == 0)) return first;
    return (struct tag){.id = first.id, .count = granules, .kind = TAG_INSIDE};
}

/* ---- pages ---- */

/* Memories of several instances are small (check_place). */
uint64_t granule_key(int memory, int instance, int64_t page) {
    uint64_t first = (uint64_t)memory << 56;
    if (instance == 0) return first | (uint64_t)page;
    return UINT64_C(1) << 63 | first | (uint64_t)instance << 26 | (uint64_t)page;
}

static uint64_t page_key(const struct verify *v, struct place_at at) {
    int64_t entry = at.address / v->granule[at.memory];
    return granule_key(at.memory, at.instance, entry / PAGE_ENTRIES);
}

static bool caller_gives(const struct verify *v, const struct place *p) {
    enum role role = v->p->buffer[p->buffer].role;
    return p->table || (p->keep == KEEP_ARGUMENT &&
                        (role == ROLE_IN || role == ROLE_INOUT || role == ROLE_CONST));
}

/* The part [low, high) of a place inside a page that begins at byte `start`. */
static bool part_of(const struct place *p, int64_t start, int64_t bytes, int64_t *low,
                    int64_t *high) {
    *low = p->address > start ? p->address : start;
    *high = p->address + p->bytes < start + bytes ? p->address + p->bytes : start + bytes;
    return *low < *high;
}

static void fill_argument(const struct verify *v, const struct place *p, struct tag *page,
                          int64_t start, int64_t low, int64_t high) {
    const struct buffer *b = &v->p->buffer[p->buffer];
    int64_t g = v->granule[p->memory], size = (int64_t)type_size(b->type);
    for (int64_t at = low; at < high; at += g) {
        int64_t element = (at - p->address) / size;
        if (element >= b->elements) break;
        struct tag t = tag_element(p->buffer, element, -1, 0, b->type);
        int64_t k = (at - p->address) % size / g;
        page[(at - start) / g] = k ? inside(t, (uint32_t)k) : t;
    }
}

static void fill_page(const struct verify *v, int memory, int64_t number, struct tag *page) {
    int64_t g = v->granule[memory], bytes = g * PAGE_ENTRIES, start = number * bytes, low, high;
    for (int p = 0; p < v->s->nplaces; p++) {
        const struct place *place = &v->s->place[p];
        if (place->memory == memory && caller_gives(v, place) &&
            part_of(place, start, bytes, &low, &high))
            fill_argument(v, place, page, start, low, high);
    }
    for (int z = 0; z < v->nzeroed; z++) {
        const struct place *place = &v->s->place[v->zeroed[z].place];
        if (place->memory != memory || !part_of(place, start, bytes, &low, &high)) continue;
        for (int64_t at = low; at < high; at += g)
            page[(at - start) / g] = (struct tag){.kind = TAG_CONST};
    }
}

static struct tag *entries(struct verify *v, struct place_at at) {
    bool fresh;
    struct tag *page = pages_get(&v->tags, page_key(v, at), &fresh);
    int64_t entry = at.address / v->granule[at.memory];
    if (fresh) fill_page(v, at.memory, entry / PAGE_ENTRIES, page);
    return &page[entry % PAGE_ENTRIES];
}

struct tag tag_get(struct verify *v, struct place_at at, enum type type) {
    int64_t g = v->granule[at.memory], n = (int64_t)type_size(type) / g;
    struct tag first = *entries(v, at);
    if (first.kind == TAG_INSIDE) return (struct tag){0};
    bool zero = first.kind == TAG_CONST && first.id == 0;
    if (!zero && first.kind != TAG_UNDEFINED && type_size((enum type)first.type) != type_size(type))
        return (struct tag){0};
    for (int64_t k = 1; k < n; k++) {
        at.address += g;
        struct tag next = *entries(v, at), expected = inside(first, (uint32_t)k);
        if (next.kind != expected.kind || next.id != expected.id ||
            (next.kind == TAG_INSIDE && next.count != expected.count))
            return (struct tag){0};
    }
    if (zero) first.type = (uint8_t)type;
    return first;
}

void tag_set(struct verify *v, struct place_at at, enum type type, struct tag t) {
    int64_t g = v->granule[at.memory], n = (int64_t)type_size(type) / g;
    for (int64_t k = 0; k < n; k++) {
        *entries(v, at) = k ? inside(t, (uint32_t)k) : t;
        at.address += g;
    }
}

void tag_copy(struct verify *v, struct place_at to, struct place_at from, enum type type) {
    int64_t g = v->granule[from.memory], bytes = (int64_t)type_size(type);
    if (g != v->granule[to.memory]) {
        tag_set(v, to, type, tag_get(v, from, type));
        return;
    }
    for (int64_t k = 0; k < bytes; k += g) {
        struct tag t = *entries(v, from);
        *entries(v, to) = t;
        from.address += g;
        to.address += g;
    }
}

/* The bytes of a home with padding are zero before its first use. */
bool tags_zero_place(struct verify *v, int place) {
    const struct place *p = &v->s->place[place];
    int64_t g = v->granule[p->memory], bytes = g * PAGE_ENTRIES, low, high;
    GROW(&v->arena, v->zeroed, v->nzeroed, v->zeroed_cap);
    v->zeroed[v->nzeroed++].place = place;
    for (int64_t n = p->address / bytes; n * bytes < p->address + p->bytes; n++) {
        if (!verify_step(v, 1)) return false;
        struct place_at at = {p->memory, 0, n * bytes};
        struct tag *page = pages_find(&v->tags, page_key(v, at));
        if (!page || !part_of(p, n * bytes, bytes, &low, &high)) continue;
        for (; low < high; low += g) page[low / g % PAGE_ENTRIES] = (struct tag){.kind = TAG_CONST};
    }
    return true;
}

/* ---- homes ---- */
struct place_at home_of(struct verify *v, int place, int64_t element) {
    const struct place *p = &v->s->place[place];
    const struct buffer *b = &v->p->buffer[p->buffer];
    int64_t index[MAX_DIMS], offset = element;
    if (p->layout || p->extent) {
        for (int d = b->ndims - 1; d >= 0; d--) {
            index[d] = element % b->extent[d];
            element /= b->extent[d];
        }
        const int64_t *extent = p->extent ? p->extent : b->extent;
        if (!v->home_stride[place]) {
            v->home_stride[place] = arena_array(&v->arena, MAX_PLACES, sizeof(int64_t));
            layout_strides(p->layout, b->ndims, extent, v->home_stride[place]);
        }
        offset = layout_offset(p->layout, b->ndims, extent, v->home_stride[place], index);
    }
    return (struct place_at){p->memory, 0, p->address + offset * (int64_t)type_size(b->type)};
}

/* ---- messages ---- */
void element_text(const struct verify *v, int buffer, int64_t element, struct text *out) {
    const struct buffer *b = &v->p->buffer[buffer];
    int64_t index[MAX_DIMS];
    for (int d = b->ndims - 1; d >= 0; d--) {
        index[d] = b->extent[d] ? element % b->extent[d] : 0;
        element = b->extent[d] ? element / b->extent[d] : 0;
    }
    text_printf(out, "%s[", b->name);
    for (int d = 0; d < b->ndims; d++) text_printf(out, d ? ", %" PRId64 : "%" PRId64, index[d]);
    text_printf(out, "]");
}

void tag_text(const struct verify *v, const struct tag *t, struct text *out) {
    if (t->kind == TAG_UNDEFINED || t->kind == TAG_INSIDE) {
        text_printf(out, "nothing that was written");
    } else if (t->kind == TAG_CONST) {
        union value x;
        memcpy(&x, &t->id, sizeof x);
        if (type_is_float((enum type)t->type))
            text_printf(out, "the constant %g", x.f);
        else
            text_printf(out, "the constant %" PRId64, x.i);
    } else {
        element_text(v, (int)(t->id >> ELEMENT_BITS),
                     (int64_t)(t->id & ((UINT64_C(1) << ELEMENT_BITS) - 1)), out);
        if (t->writer < 0)
            text_printf(out, " as the caller gave it");
        else
            text_printf(out, " after %u of statement %d", t->count, t->writer);
        if (t->writer >= 0 && t->step) text_printf(out, " in step %u", t->step);
    }
}
