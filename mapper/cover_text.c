/* Checking and printing covers. */
#include "mapper/mapper_int.h"

static bool wrong(struct diags *d, const struct cover *c, const char *what, int stmt) {
    diag_line(d, c->program->source.file, 0, 0, "cover: %s (statement %d)", what, stmt);
    return false;
}

static bool item_sound(const struct cover *c, const struct needles *needles,
                       const struct cover_item *i, struct diags *d) {
    if (i->inside >= 0) {
        bool good = i->inside < c->nitems && i->mapping < 0 && c->item[i->inside].mapping >= 0;
        const struct mapping *m = good ? &c->mapping[c->item[i->inside].mapping] : NULL;
        bool also = false;
        for (int q = 0; m && q < m->nalso; q++) also |= m->also[q] == i->stmt;
        good = good && (also || m->init == i->stmt);
        return good
                   ? true
                   : wrong(d, c, "a statement is inside an item that does not execute it", i->stmt);
    }
    if (i->mapping < 0)
        return needles->machine->nfallbacks > 0
                   ? true
                   : wrong(d, c, "the machine has no fallback for a statement", i->stmt);
    if (i->mapping >= c->nmappings || c->mapping[i->mapping].stmt != i->stmt)
        return wrong(d, c, "an item names another statement's mapping", i->stmt);
    const struct mapping *m = &c->mapping[i->mapping];
    if (m->init >= 0 && (m->init >= c->nitems || c->item[m->init].inside != i->stmt))
        return wrong(d, c, "a mapping executes a fill that another item executes too", i->stmt);
    if (stmt_in_recurrence(c->program, i->stmt))
        return wrong(d, c, "a statement of a recurrence is mapped", i->stmt);
    struct text why = {0};
    bool good = mapping_certify_with(needles, c->program, m, &why);
    if (!good)
        diag_line(d, c->program->source.file, 0, 0, "cover: statement %d is not certified: %s",
                  i->stmt, why.at ? why.at : "");
    text_free(&why);
    return good;
}

bool cover_verify(const struct cover *c, const struct machine *m, struct diags *d) {
    struct program *closed = program_closed(c->program, &c->steps);
    bool good = program_verify(closed, d);
    program_free(closed);
    struct needles *needles = needles_open(m);
    if (c->nitems != c->program->nstmts)
        good = wrong(d, c, "items and statements are not one to one", c->nitems);
    for (int i = 0; i < c->nitems; i++) {
        if (c->item[i].stmt != i)
            good = wrong(d, c, "items are not in program order", i);
        else
            good &= item_sound(c, needles, &c->item[i], d);
    }
    needles_close(needles);
    return good;
}

void cover_print(const struct cover *c, const struct machine *m, struct text *t) {
    text_printf(t, "cover cost %.6g\n", c->cost);
    for (int i = 0; i < c->nitems; i++) {
        const struct cover_item *item = &c->item[i];
        const struct stmt *s = &c->program->stmt[item->stmt];
        text_printf(t, "  %s: ", c->program->buffer[s->dst.buffer].name);
        if (item->inside >= 0)
            text_printf(t, "statement %d inside statement %d", item->stmt, item->inside);
        else if (item->mapping < 0)
            text_printf(t, "statement %d by the fallback", item->stmt);
        else
            mapping_print(c->program, m, &c->mapping[item->mapping], t);
        text_printf(t, "\n");
    }
}
