#include "sim/sim_int.h"

#include <stdlib.h>
#include <string.h>

/* The most bytes that places of a memory reach to. */
static int64_t used_bytes(const struct schedule *s, int memory) {
    int64_t most = 0;
    for (int p = 0; p < s->nplaces; p++) {
        int64_t end;
        if (s->place[p].memory != memory || s->place[p].address < 0) continue;
        if (__builtin_mul_overflow(s->place[p].bytes, (int64_t)s->place[p].slots, &end) ||
            __builtin_add_overflow(end, s->place[p].address, &end))
            return -1;
        if (end > most) most = end;
    }
    return most;
}

bool images_open(struct engine *e) {
    const struct machine *m = e->machine;
    e->image =
        arena_array(&e->arena, (size_t)m->nmemories * (size_t)e->instances, sizeof *e->image);
    for (int i = 0; i < m->nmemories; i++) {
        int64_t bytes = used_bytes(e->schedule, i);
        if (bytes < 0 || bytes > (int64_t)1 << 36) {
            diag_line(e->diags, e->schedule->machine_name, 0, 0,
                      "places in memory '%s' reach beyond what can be simulated", m->memory[i].id);
            return false;
        }
        if (e->counting) e->result->peak_bytes[i] = bytes;
        for (int k = 0; k < e->instances; k++) {
            struct image *image = &e->image[i * e->instances + k];
            image->granule = i == m->home ? 64 : m->memory[i].word > 1 ? m->memory[i].word : 16;
            image->bytes = bytes;
        }
    }
    return true;
}

void images_close(struct engine *e) {
    for (int i = 0; i < e->machine->nmemories * e->instances; i++) {
        free(e->image[i].byte);
        free(e->image[i].visible);
        free(e->image[i].writer);
    }
}

static bool is_private(const struct machine *m, int memory) {
    for (int u = m->memory[memory].unit; u >= 0; u = m->unit[u].parent)
        if (m->unit[u].count != 1 || m->unit[u].count_max != 1) return true;
    return false;
}

struct image *image_of(struct engine *e, int memory, int instance) {
    struct image *image =
        &e->image[memory * e->instances + (is_private(e->machine, memory) ? instance : 0)];
    if (!image->byte) {
        size_t granules = (size_t)(image->bytes / image->granule + 2);
        image->byte = calloc((size_t)image->bytes + 64, 1);
        image->visible = calloc(granules, sizeof *image->visible);
        image->writer = calloc(granules, sizeof *image->writer);
    }
    return image;
}

static void home_copy(struct engine *e, int buffer, uint8_t *out, const uint8_t *in) {
    const struct schedule *s = e->schedule;
    const struct buffer *b = &s->program->buffer[buffer];
    const struct place *p = &s->place[schedule_home(s, buffer)];
    uint8_t *home = image_of(e, p->memory, e->instance)->byte + p->address;
    size_t size = type_size(b->type);
    if (!p->layout) {
        if (out)
            memcpy(out, home, (size_t)b->elements * size);
        else
            memcpy(home, in, (size_t)b->elements * size);
        return;
    }
    int64_t index[MAX_DIMS] = {0};
    for (int64_t n = 0; n < b->elements; n++) {
        int64_t at = layout_offset(p->layout, b->ndims, p->extent, NULL, index) * (int64_t)size;
        if (out)
            memcpy(out + (size_t)n * size, home + at, size);
        else
            memcpy(home + at, in + (size_t)n * size, size);
        for (int d = b->ndims - 1; d >= 0 && ++index[d] == b->extent[d]; d--) index[d] = 0;
    }
}

void home_gather(struct engine *e, int buffer, uint8_t *to) {
    home_copy(e, buffer, to, NULL);
}

void home_scatter(struct engine *e, int buffer, const uint8_t *from) {
    home_copy(e, buffer, NULL, from);
}

static void arguments(struct engine *e, bool in) {
    const struct program *p = e->schedule->program;
    for (int b = 0; b < p->nbuffers; b++) {
        enum role r = p->buffer[b].role;
        if (!e->data || !e->data[b] || schedule_home(e->schedule, b) < 0) continue;
        if (in && (r == ROLE_IN || r == ROLE_INOUT || r == ROLE_CONST))
            home_scatter(e, b, e->data[b]);
        if (!in && (r == ROLE_OUT || r == ROLE_INOUT)) home_gather(e, b, e->data[b]);
    }
}

void images_load(struct engine *e) {
    arguments(e, true);
}

void images_store(struct engine *e) {
    arguments(e, false);
}
