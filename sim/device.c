/* Beside a device that somebody else runs: its steps are handed over in program order, the host's
 * work is done here. */
#include "sim/sim_int.h"

bool device_takes(const struct engine *e, const struct node *n) {
    const struct machine *m = e->machine;
    int queue = -1;
    if (n->kind == NODE_LOOP && n->loop->kind == LOOP_HARDWARE) {
        struct hardware h;
        queue = hardware_issue(m, n->loop, &h) ? m->instr[h.issue->instr].queue : -1;
    }
    if (n->kind == NODE_ISSUE) queue = m->instr[n->issue->instr].queue;
    if (n->kind == NODE_CONFIGURE) queue = m->configure[n->configure->configure].queue;
    if (n->kind == NODE_SYNC) queue = n->sync.queue;
    return queue >= 0 && (!machine_queue_is_host(m, queue) || n->kind == NODE_SYNC);
}

/* The host waits for each launch: it needs no signals. */
bool device_step(struct engine *e, const struct node *n) {
    struct simulation *sim = e->executor->user;
    const struct sim_device *d = sim->device;
    if (n->kind == NODE_SYNC && machine_queue_is_host(e->machine, n->sync.queue)) return true;
    sim->waiting = true;
    if (d->step(d->user, n, e->value, e->slot)) return true;
    e->failed = true;
    return false;
}

bool device_run(struct engine *e) {
    struct simulation *sim = e->executor->user;
    const struct sim_device *d = sim->device;
    if (!sim->waiting) return true;
    struct image *home = image_of(e, e->machine->home);
    sim->waiting = false;
    if (home && d->run(d->user, home->byte, home->bytes, e->preparing)) return true;
    e->failed = true;
    return false;
}
