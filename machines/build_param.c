/* What a machine has parameters for, with the values of this computer and of the call, and what
 * tells whether a processor has a feature. */
#include "machines/build.h"
#include "ir/nearest.h"

#include <stdio.h>
#include <string.h>

/* ---- parameters ---- */

static const struct binding *set_of(const struct build *b, const char *name) {
    for (int i = 0; b->set && i < b->set->n; i++)
        if (!strcmp(b->set->at[i].name, name)) return &b->set->at[i];
    return NULL;
}

/* Its own file's value; reported where it stands. */
static const struct parameter *measured_of(struct build *b, const struct param *p) {
    const struct parameter *own = parameter_of(b->parameters, p->name);
    if (!own || !p->has_range || (own->value >= p->lo && own->value <= p->hi)) return own;
    diag_line(b->diags, b->parameters->file, own->line, own->col,
              "parameter '%s' is %lld, expected a value in its range %lld..%lld", p->name,
              (long long)own->value, (long long)p->lo, (long long)p->hi);
    return NULL;
}

static void check_measured(struct build *b) {
    for (int i = 0; b->parameters && i < b->parameters->n; i++) {
        const struct parameter *p = &b->parameters->at[i];
        if (build_find(b, KIND_PARAM, p->name) < 0)
            diag_line(b->diags, b->parameters->file, p->line, p->col,
                      "machine '%s' has no parameter '%s'", b->m->name, p->name);
    }
}

static void check_host(struct build *b, const struct node *n, const struct param *p) {
    const char *file;
    int level;
    if (p->host && !system_word(p->host, &level, &file))
        diag_line(b->diags, n->file, n->line, 0,
                  "parameter '%s' is '%s' of the host, expected cache LEVEL size, ways or line, "
                  "for instance 'cache 2 size'",
                  p->name, p->host);
}

static void build_param(struct build *b, const struct node *n) {
    struct machine *m = b->m;
    struct param *p = &m->param[m->nparams];
    p->name = node_attr(n, "name");
    p->value = build_int(b, n, "value", 0, INT32_MIN);
    p->host = node_attr(n, "host");
    check_host(b, n, p);
    p->has_range = node_attr(n, "range") && build_range(b, n, "range", &p->lo, &p->hi);
    const struct binding *given = set_of(b, p->name);
    const struct parameter *own = given ? NULL : measured_of(b, p);
    if (given) p->value = given->value;
    if (own) p->value = own->value;
    if (p->has_range && (p->value < p->lo || p->value > p->hi))
        diag_line(b->diags, n->file, n->line, 0,
                  "parameter '%s' is %lld, expected a value in its range %lld..%lld", p->name,
                  (long long)p->value, (long long)p->lo, (long long)p->hi);
    m->nparams++;
}

void build_params(struct build *b, const struct node *root) {
    struct machine *m = b->m;
    m->param = arena_array(b->arena, (size_t)b->n[KIND_PARAM], sizeof *m->param);
    for (int i = 0; i < b->n[KIND_PARAM]; i++) build_param(b, b->found[KIND_PARAM][i].node);
    check_measured(b);
    struct binding *binding = arena_array(b->arena, (size_t)m->nparams, sizeof *binding);
    for (int i = 0; i < m->nparams; i++)
        binding[i] = (struct binding){m->param[i].name, m->param[i].value};
    m->params = (struct bindings){binding, m->nparams, NULL};
    for (int i = 0; b->set && i < b->set->n; i++) {
        if (build_find(b, KIND_PARAM, b->set->at[i].name) >= 0) continue;
        struct names known = {0};
        for (int k = 0; k < m->nparams; k++) names_add(b->arena, &known, m->param[k].name);
        diag_line(b->diags, root->file, root->line, 0,
                  "machine '%s' has no parameter '%s', expected %s", m->name, b->set->at[i].name,
                  names_listed(b->arena, b->set->at[i].name, &known));
    }
}

/* ---- features ---- */

static bool cpuid_parts(const char *text, struct feature *f) {
    static const char *const registers[] = {"eax", "ebx", "ecx", "edx"};
    char reg[4];
    int used = 0;
    if (sscanf(text, "%i , %i , %3[a-z] , %d %n", &f->leaf, &f->subleaf, reg, &f->bit, &used) !=
            4 ||
        text[used])
        return false;
    f->reg = -1;
    for (int i = 0; i < 4; i++)
        if (!strcmp(reg, registers[i])) f->reg = i;
    return f->reg >= 0 && f->bit >= 0 && f->bit < 32 && f->leaf >= 0 && f->subleaf >= 0;
}

static void check_options(struct build *b, const struct node *n, const char *attr) {
    const char *text = node_attr(n, attr);
    size_t plain = text ? strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,+-")
                        : 0;
    if (text && (!plain || text[plain]))
        diag_line(b->diags, n->file, node_attr_line(n, attr), 0,
                  "%s '%s', expected features of LLVM with commas between, such as '+avx2,+fma'",
                  attr, text);
}

void build_feature(struct build *b, struct feature *t, const struct found *f) {
    const struct node *n = f->node;
    const char *cpuid = node_attr(n, "cpuid");
    *t = (struct feature){.id = f->id,
                          .leaf = -1,
                          .capability = node_attr(n, "capability"),
                          .target = node_attr(n, "target"),
                          .llvm = node_attr(n, "llvm"),
                          .permit = node_attr(n, "permit")};
    if (cpuid && !cpuid_parts(cpuid, t))
        diag_line(b->diags, n->file, node_attr_line(n, "cpuid"), 0,
                  "cpuid '%s', expected 'leaf,subleaf,register,bit' such as '7,0,ebx,5'", cpuid);
    check_options(b, n, "target");
    check_options(b, n, "llvm");
    if (!cpuid && !t->capability)
        diag_line(b->diags, n->file, n->line, 0,
                  "feature '%s' cannot be tested for, expected cpuid or capability", f->id);
    unsigned code, argument;
    int used = 0;
    if (t->permit && (sscanf(t->permit, "arch_prctl %x %u %n", &code, &argument, &used) != 2 ||
                      t->permit[used] || code < 0x1021 || code > 0x1025))
        diag_line(
            b->diags, n->file, node_attr_line(n, "permit"), 0,
            "permit '%s', expected 'arch_prctl CODE ARGUMENT' with a CODE from 0x1021 to 0x1025",
            t->permit);
}
