/* A machine as text, for comparing it with others. */
#include "machines/tree.h"

#include <inttypes.h>

static void describe_node(const struct node *n, struct text *out) {
    text_printf(out, "<%s", n->tag);
    for (int i = 0; i < n->nattrs; i++)
        text_printf(out, " %s=\"%s\"", n->attr[i].name, n->attr[i].value);
    text_printf(out, ">%s\n", n->text ? n->text : "");
    for (int i = 0; i < n->nchildren; i++) describe_node(n->child[i], out);
    text_printf(out, "</%s>\n", n->tag);
}

void machine_describe(const struct machine *m, struct text *out) {
    text_printf(out, "%s %s\n", m->name, m->file);
    describe_node(m->tree, out);
    for (int i = 0; i < m->nparams; i++)
        text_printf(out, "%s=%" PRId64 "\n", m->param[i].name, m->param[i].value);
    for (int i = 0; i < m->ninstrs; i++) text_printf(out, "%s\n", m->instr[i].id);
}
