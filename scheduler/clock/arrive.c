/* Does what an out-of-order queue reads arrive in each of the next periods as it did in the one
 * before? What it reads was written at times that the loop does not decide, and an instruction
 * whose operand came earlier than that of the one before goes into a gap that it has left. */
#include "scheduler/clock/period_int.h"

#include <math.h>

static const double alike = 1e-6; /* cycles */

/* An instruction whose operands arrive in it starts where the queue's work ends. */
struct filled {
    double quiet;    /* or before this */
    double from, to; /* all servers are busy then, and are free after it */
};

static struct filled filled_of(const struct engine *e, int queue) {
    struct filled f = {.quiet = INFINITY, .from = -INFINITY, .to = INFINITY};
    for (int w = 0; w < (int)e->machine->queue[queue].width; w++) {
        const struct server *s = &e->queue[queue].server[w];
        f.quiet = fmin(f.quiet, s->from);
        if (s->n == 0) {
            f.to = -INFINITY;
            continue;
        }
        f.from = fmax(f.from, s->busy[s->n - 1].start);
        f.to = fmin(f.to, s->busy[s->n - 1].end);
    }
    f.quiet = fmax(f.quiet, e->floor);
    return f;
}

static double arrival_of(const struct engine *e, int queue, const struct marks *marks, int64_t g) {
    const struct granule is = marks_granule(marks, g);
    bool waits = is.writer && (e->interlocked[queue] >> (is.writer - 1) & 1);
    return waits ? is.visible : 0;
}

/* Something that the period moves is moved by so much. */
static bool is_rate(const struct snapshot *before, const struct snapshot *now, double by) {
    for (int k = 0; k < now->ntimes; k++)
        if (fabs(now->time[k] - before->time[k] - by) <= alike) return true;
    return false;
}

/* How much the period moves that time by; NAN: it is none that it knows. */
static double moved_by(const struct snapshot *before, const struct snapshot *now, double time) {
    for (int k = 0; k < now->ntimes; k++)
        if (now->time[k] == time) return now->time[k] - before->time[k];
    return NAN;
}

/* What arrives later by more in each period than the queue's work ends, and did not hold it up at
 * first, does when the queue has caught up with it. */
static bool caught_up(const struct engine *e, int queue, const struct image *image,
                      const struct range *range, int64_t by, const struct filled *f, double rate) {
    for (int64_t g = range->first < 0 ? 0 : range->first;
         g <= range->last && g <= image->bytes / image->piece; g++) {
        int64_t periods = (by > 0 ? g - range->first : range->last - g) / (by > 0 ? by : -by);
        double ends = f->to + (double)(periods > 1 ? periods - 1 : 0) * rate;
        if (arrival_of(e, queue, &image->marks, g) > ends) return true;
    }
    return false;
}

bool arrivals_steady(const struct engine *e, const struct snapshot *before,
                     const struct snapshot *now, int queue, struct image *image,
                     const struct range *range) {
    struct filled f = filled_of(e, queue);
    int64_t by = range->step / image->piece, granules = image->bytes / image->piece + 1;
    int64_t first = range->first < 0 ? 0 : range->first,
            last = range->last < granules ? range->last : granules;
    bool free = false, even = range->step % image->piece == 0;
    double slope = NAN;
    marks_settle(&image->marks, first, last);
    for (int64_t g = first; g <= last; g++) {
        double at = arrival_of(e, queue, &image->marks, g);
        free |= at > f.quiet && (at < f.from || at > f.to);
        if (!even || g - by < first || g - by > last) continue;
        double more = at - arrival_of(e, queue, &image->marks, g - by);
        if (isnan(slope)) slope = more;
        even = fabs(more - slope) <= alike;
        if (free && !even) return false;
    }
    if (!free || isnan(slope)) return !free || even;
    double rate = moved_by(before, now, f.to), gain = by < 0 ? -slope : slope;
    return even && is_rate(before, now, slope) &&
           !(gain > rate + alike && caught_up(e, queue, image, range, by, &f, rate));
}
