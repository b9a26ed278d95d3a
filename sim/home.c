/* Homes: where the arguments' elements lie in the memories. */
#include "sim/sim_int.h"

#include <string.h>

static uint8_t *home_bytes(struct engine *e, int place) {
    const struct place *p = &e->schedule->place[place];
    struct image *image = image_of(e, p->memory);
    return image ? image->byte + p->address : NULL;
}

static bool home_copy(struct engine *e, int buffer, const int64_t *lo, const int64_t *hi,
                      uint8_t *out, const uint8_t *in) {
    const struct schedule *s = e->schedule;
    const struct buffer *b = &s->program->buffer[buffer];
    int place = schedule_home(s, buffer);
    if (place < 0) return engine_error(e, NULL, "buffer '%s' has no home", b->name);
    const struct place *p = &s->place[place];
    const int64_t *extent = p->extent ? p->extent : b->extent;
    uint8_t *home = home_bytes(e, place);
    int64_t size = (int64_t)type_size(b->type), index[MAX_DIMS] = {0}, stride[MAX_PLACES],
            count = 1;
    if (!home) return false;
    bool dense = !p->layout;
    for (int d = 0; d < b->ndims; d++) {
        dense = dense && (!d || extent[d] == b->extent[d]) && lo[d] == 0 && hi[d] == b->extent[d];
        if (hi[d] <= lo[d]) return true;
        count *= hi[d] - lo[d];
        index[d] = lo[d];
    }
    if (dense) {
        if (out)
            memcpy(out, home, (size_t)(b->elements * size));
        else
            memcpy(home, in, (size_t)(b->elements * size));
        return true;
    }
    layout_strides(p->layout, b->ndims, extent, stride);
    for (int64_t k = 0; k < count; k++) {
        int64_t n = 0;
        for (int d = 0; d < b->ndims; d++) n = n * b->extent[d] + index[d];
        int64_t at = layout_offset(p->layout, b->ndims, extent, stride, index) * size;
        if (at < 0 || at + size > p->bytes)
            return engine_error(e, NULL, "an element of '%s' lies outside its home", b->name);
        if (out)
            memcpy(out + n * size, home + at, (size_t)size);
        else
            memcpy(home + at, in + n * size, (size_t)size);
        for (int d = b->ndims - 1; d >= 0 && ++index[d] == hi[d]; d--) index[d] = lo[d];
    }
    return true;
}

bool home_gather(struct engine *e, int buffer, const int64_t *lo, const int64_t *hi, uint8_t *to) {
    return home_copy(e, buffer, lo, hi, to, NULL);
}

bool home_scatter(struct engine *e, int buffer, const int64_t *lo, const int64_t *hi,
                  const uint8_t *from) {
    return home_copy(e, buffer, lo, hi, NULL, from);
}

bool home_zero(struct engine *e, int place) {
    uint8_t *home = home_bytes(e, place);
    if (home) memset(home, 0, (size_t)e->schedule->place[place].bytes);
    return home != NULL;
}

static const int64_t first[MAX_DIMS];

static bool arguments(struct engine *e, bool in) {
    const struct program *p = e->schedule->program;
    const struct simulation *sim = e->executor->user;
    for (int b = 0; b < p->nbuffers; b++) {
        enum role r = p->buffer[b].role;
        if (!sim->data || !sim->data[b] || schedule_home(e->schedule, b) < 0) continue;
        bool given = r == ROLE_IN || r == ROLE_INOUT || r == ROLE_CONST ||
                     p->buffer[b].size; /* rows behind an open size stay as they are */
        if (in && given && !home_scatter(e, b, first, p->buffer[b].extent, sim->data[b]))
            return false;
        if (!in && (r == ROLE_OUT || r == ROLE_INOUT) &&
            !home_gather(e, b, first, p->buffer[b].extent, sim->data[b]))
            return false;
    }
    return true;
}

/* Homes of tables hold their entries from the start. */
static bool tables(struct engine *e) {
    for (int p = 0; p < e->schedule->nplaces; p++) {
        const struct place *place = &e->schedule->place[p];
        const int64_t *extent = e->schedule->program->buffer[place->buffer].extent;
        if (place->table && !home_scatter(e, place->buffer, first, extent, place->table))
            return false;
    }
    return true;
}

bool images_load(struct engine *e) {
    return tables(e) && arguments(e, true);
}

bool images_store(struct engine *e) {
    return arguments(e, false);
}
