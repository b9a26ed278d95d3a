/* Terms of the price: each has a name, stands in the plan, and can be left out to see what it
 * decides. */
#include "scheduler/plan/price.h"
#include "scheduler/plan/price_int.h"
#include <math.h>

const char *const price_name[PRICE_TERMS] = {
    "issues",  "entries", "dependent sums",  "reads in place", "followers", "first fills",
    "table",   "steps",   "short steps",     "outer fills",    "brackets",  "rings",
    "stream",  "pieces",  "stores on a bus", "giving back",    "returns",   "spills",
    "starts",  "slots",   "behind stores",   "apart",          "grains",    "last store",
    "busiest", "refills", "waking",          "ties",           "code",      "meetings",
    "lanes",   "overlap", "states"};

bool price_counts(const struct work *w, enum price_term t) {
    return !w->options || !(w->options->left_out >> t & 1);
}

double price_add(const struct pricing *c, enum price_term t, double cycles) {
    if (!price_counts(c->w, t)) return 0;
    c->plan->price[t] += cycles;
    return cycles;
}

void price_text(struct text *t, const struct plan *p) {
    const char *before = "  price ";
    for (int k = 0; k < PRICE_TERMS; k++) {
        if (!(fabs(p->price[k]) >= 0.5)) continue;
        text_printf(t, "%s%s %.0f", before, price_name[k], p->price[k]);
        before = ", ";
    }
    if (p->share.n) text_printf(t, "; %.1f %% of it on the busiest instance", 100 * p->share.part);
    if (*before == ',') text_printf(t, "\n");
}
