/* The memories that a schedule uses: how many bytes and instances each has, and who used which
 * piece of it last. */
#include "scheduler/clock/clock_int.h"
#include "ir/memory.h"

#include <stdlib.h>
#include <string.h>

static const int64_t most_bytes = (int64_t)1 << 36;
enum { MOST_GRANULES = 1 << 22, MOST_IMAGES = 1 << 20 };

static bool place_error(struct engine *e, int place, const char *what) {
    const struct place *p = &e->schedule->place[place];
    return engine_error(e, NULL, "place '%s' %s memory '%s'", p->name, what,
                        e->machine->memory[p->memory].id);
}

/* A home's bytes hold its elements. */
static bool home_fits(struct engine *e, int place) {
    const struct place *p = &e->schedule->place[place];
    const struct buffer *b = &e->schedule->program->buffer[p->buffer];
    const int64_t *extent = p->extent ? p->extent : b->extent;
    int64_t size = (int64_t)type_size(b->type), elements = 1;
    for (int d = 0; d < b->ndims; d++)
        if (extent[d] < b->extent[d] || __builtin_mul_overflow(elements, extent[d], &elements) ||
            elements > most_bytes)
            return engine_error(e, NULL, "home '%s' has impossible extents", p->name);
    if (b->elements == 0 || (p->bytes == 0 && p->keep == KEEP_WORKSPACE)) return true;
    int64_t span = layout_span(p->layout, b->ndims, extent, NULL);
    if (span < 0 || span > p->bytes / size)
        return engine_error(e, NULL, "home '%s' has %lld bytes, its elements need more", p->name,
                            (long long)p->bytes);
    return true;
}

/* The most bytes that places of a memory reach to; -1 after reporting. */
static int64_t used_bytes(struct engine *e, int memory) {
    const struct schedule *s = e->schedule;
    int64_t most = 0, size = e->machine->memory[memory].size;
    for (int p = 0; p < s->nplaces; p++) {
        int64_t end;
        if (s->place[p].memory != memory) continue;
        if (s->place[p].address < 0 || s->place[p].bytes < 0 || s->place[p].slots < 1 ||
            __builtin_mul_overflow(s->place[p].bytes, (int64_t)s->place[p].slots, &end) ||
            __builtin_add_overflow(end, s->place[p].address, &end) || (size >= 0 && end > size))
            return place_error(e, p, "reaches beyond"), -1;
        if (end > most_bytes) return place_error(e, p, "is too far away to be simulated in"), -1;
        if (s->place[p].keep != KEEP_LOCAL && !home_fits(e, p)) return -1;
        if (end > most) most = end;
    }
    return most;
}

static int unit_of(const struct machine *m, int memory) {
    return memory < m->nmemories ? m->memory[memory].unit : m->state[memory - m->nmemories].unit;
}

static const char *name_of(const struct machine *m, int memory) {
    return memory < m->nmemories ? m->memory[memory].id : m->state[memory - m->nmemories].id;
}

static bool image_open(struct engine *e, int memory, int64_t bytes, int64_t piece) {
    int64_t n = 1;
    for (int u = unit_of(e->machine, memory); u >= 0 && n <= MOST_IMAGES;
         u = e->machine->unit[u].parent)
        n *= unit_instances(e->machine, u);
    if (n > MOST_IMAGES)
        return engine_error(e, NULL, "memory '%s' has too many instances to be simulated",
                            name_of(e->machine, memory));
    while (bytes / piece > MOST_GRANULES) piece *= 2;
    e->images[memory] = bytes > 0 ? n : 1;
    e->image[memory] = memory_array((size_t)e->images[memory], sizeof *e->image[memory]);
    for (int64_t k = 0; k < e->images[memory]; k++)
        e->image[memory][k] = (struct image){.bytes = bytes, .piece = piece};
    return true;
}

bool images_open(struct engine *e) {
    const struct machine *m = e->machine;
    size_t n = (size_t)(m->nmemories + m->nstates) + 1;
    e->image = arena_array(&e->arena, n, sizeof *e->image);
    e->images = arena_array(&e->arena, n, sizeof *e->images);
    for (int i = 0; i < m->nmemories; i++) {
        int64_t bytes = used_bytes(e, i), word = m->memory[i].word, least = 16;
        if (m->memory[i].pass == PASS_NUMBER) least = 1; /* each register */
        if (bytes < 0 || !image_open(e, i, bytes, word > least ? word : least)) return false;
        e->result->peak_bytes[i] = bytes;
    }
    for (int s = 0; s < m->nstates; s++)
        if (!image_open(e, m->nmemories + s, slots_kept(m, s), 1)) return false;
    states_open(e);
    return true;
}

void images_close(struct engine *e) {
    for (int i = 0; i < e->machine->nmemories + e->machine->nstates; i++) {
        for (int64_t k = 0; k < e->images[i]; k++) {
            memory_give(e->image[i][k].byte);
            marks_close(&e->image[i][k].marks);
        }
        free(e->image[i]);
    }
}

int64_t image_instance(const struct engine *e, int memory) {
    int64_t at = 0, scale = 1;
    for (int u = e->images[memory] > 1 ? unit_of(e->machine, memory) : -1; u >= 0;
         u = e->machine->unit[u].parent) {
        at += e->unit_instance[u] * scale;
        scale *= unit_instances(e->machine, u);
    }
    return at;
}

struct image *image_of(struct engine *e, int memory) {
    return image_at(e, memory, 0);
}

struct image *image_at(struct engine *e, int memory, int64_t further) {
    int64_t at = e->images[memory] > 1 ? image_instance(e, memory) + further : 0;
    struct image *image = &e->image[memory][at];
    if (!image->byte && e->executor) image->byte = memory_take((size_t)image->bytes + 64, 1);
    if (!image->marks.page && e->tracks)
        marks_open(&image->marks, image->bytes / image->piece + 2, e->machine->nqueues);
    return image;
}

static void forget(struct engine *e, int memory) {
    for (int64_t k = 0; k < e->images[memory]; k++) marks_forget(&e->image[memory][k].marks);
}

void images_forget(struct engine *e) {
    for (int i = 0; i < e->machine->nmemories + e->machine->nstates; i++) forget(e, i);
}

void images_renew(struct engine *e, int unit) {
    for (int i = 0; e->tracks && i < e->machine->nmemories; i++)
        if (unit_inside(e->machine, e->machine->memory[i].unit, unit)) forget(e, i);
}
