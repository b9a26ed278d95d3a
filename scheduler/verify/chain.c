/* The program that a schedule carries against the program as it was written. */
#include "scheduler/schedule/schedule.h"

#include <string.h>

bool chain_check(const struct schedule *s, struct chain_report *r, struct text *what,
                 struct diags *diags) {
    *r = chain_verify(s->chain, s->program, what);
    if (r->evidence != EVIDENCE_REFUTED) return true;
    diag_line(diags, s->program->name, 0, 0,
              "the scheduled program is not the one that was written: %s (changed by '%s')",
              r->why ? r->why : "", r->by ? r->by : "");
    return false;
}
