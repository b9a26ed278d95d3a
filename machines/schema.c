/* Structure: which elements and attributes may stand where. Our own table says what was expected;
 * the RELAX NG schema then has the last word (order, and whatever the table does not say). */
#include "machines/tree.h"
#include "ir/memory.h"
#include <ctype.h>
#include <libxml/relaxng.h>
#include <stdlib.h>
#include <string.h>

#define BODY                                                                                       \
    "doc param include remove for feature prelude memory bus queue state sync format unit "        \
    "instruction move configure fallback measure begin end"
#define COST " latency interval overhead energy area"
#define DETAIL "doc semantics operand require need loop emit"

static const struct element {
    const char *tag, *required, *optional, *children;
} elements[] = {
    {"machine", "name", "title needs clock fetch doorbell launch priority model", BODY},
    {"doc", "", "", ""},
    {"param", "name value", "range host", ""},
    {"include", "href", "share", ""},
    {"remove", "id", "", ""},
    {"for", "each in", "", BODY},
    {"feature", "id", "cpuid capability target llvm permit", ""},
    {"prelude", "as", "", ""},
    {"fallback", "as queue memory",
     "id latency interval copy turn gather vector enter divide function statement bring product cut home hidden", ""},
    {"measure", "param from to", "with threads", ""},
    {"ahead", "", "", "emit"},
    {"begin", "", "", "emit"},
    {"end", "", "", "emit"},
    {"unit", "id", "count total index virtual clock fetch waking power", BODY},
    {"memory", "id",
     "size word align banks interleave ports pass types caches line ways rate latency usable "
     "hidden tiles refill writeback streams prefetch serves energy-read "
     "energy-write pool scalable alias map",
     "part"},
    {"part", "id", "min max", ""},
    {"bus", "id rate", "latency burst energy", ""},
    {"queue", "id", "depth width order pick contention window threads registers with", "begin"},
    {"state", "id fields", "init count of size align", ""},
    {"sync", "id kind", "from to depth count memory size unit asynchronous latency interval", "init push pop"},
    {"init", "", "", "emit"},
    {"push", "", "queue", "emit"},
    {"pop", "", "queue", "emit"},
    {"format", "id bits", "format", "field"},
    {"instruction", "id", "queue needs completes blocking subnormals units scratch bus" COST, DETAIL},
    {"move", "id from to", "queue needs completes blocking subnormals crossing bus across types" COST, DETAIL " ahead"},
    {"configure", "id sets", "queue clobbers at" COST, "emit"},
    {"semantics", "", "", ""},
    {"operand", "buffer", "memory layout strides align swizzle accumulate also pass ahead", "layout"},
    {"layout", "map", "strides let swizzle", ""},
    {"require", "test", "", ""},
    {"need", "state value", "of", ""},
    {"loop", "id max", "table", "entry"},
    {"entry", "bits", "", "field"},
    {"emit", "as", "library header", "word"},
    {"word", "", "bits format at", "field"},
    {"field", "at bits value", "signed name", ""},
};

static const struct element *element_find(const char *tag) {
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (!strcmp(elements[i].tag, tag)) return &elements[i];
    return NULL;
}

static bool listed(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *p = list; *(p += strspn(p, " "));) {
        size_t k = strcspn(p, " ");
        if (k == n && !strncmp(p, word, n)) return true;
        p += k;
    }
    return false;
}

static bool each_required(struct loader *l, const struct node *n, const char *list) {
    bool good = true;
    char copy[64];
    strcpy(copy, list);
    for (char *save, *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
        if (!node_attr(n, w)) {
            diag_line(l->diags, n->file, n->line, 0,
                      "element '%s' has no attribute '%s', expected %s", n->tag, w, list);
            good = false;
        }
    return good;
}

static bool is_id(const char *s) {
    const char *p = s;
    if (!*p) return false;
    while (*p) {
        bool first = p == s;
        if (p[0] == '$' && p[1] == '(') {
            p = strchr(p, ')');
            if (!p) return false;
        } else if (!isalpha((unsigned char)*p) && !strchr("_*", *p) &&
                   (first || (!isdigit((unsigned char)*p) && !strchr(".-", *p)))) {
            return false;
        }
        p++;
    }
    return true;
}

static const struct {
    const char *attr, *values;
} choices[] = {{"pass", "pointer value number"}, {"order", "program data"},
               {"at", "program launch"},         {"kind", "token group barrier fence interlock"},
               {"as", "llvm c cuda bits"},       {"virtual", "true false 1 0"},
               {"signed", "true false 1 0"},     {"blocking", "true false 1 0"},
               {"asynchronous", "true false 1 0"},
               {"subnormals", "keep zero"}};

static bool check_value(struct loader *l, const struct node *n, const struct attr *a) {
    if ((!strcmp(a->name, "id") || (!strcmp(a->name, "name") && strcmp(n->tag, "field"))) &&
        !is_id(a->value)) {
        diag_line(
            l->diags, n->file, a->line, 0,
            "%s '%s' is no name, expected a letter or '_', then letters, digits, '_', '.' or '-'",
            a->name, a->value);
        return false;
    }
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        if (strcmp(choices[i].attr, a->name)) continue;
        if (!strcmp(a->name, "at") && strcmp(n->tag, "configure")) continue;
        if (!listed(choices[i].values, a->value)) {
            diag_line(l->diags, n->file, a->line, 0, "unknown %s '%s' of '%s', expected one of: %s",
                      a->name, a->value, n->tag, choices[i].values);
            return false;
        }
    }
    return true;
}

static bool check_attributes(struct loader *l, const struct node *n, const struct element *e) {
    bool good = each_required(l, n, e->required);
    for (int i = 0; i < n->nattrs; i++) {
        const struct attr *a = &n->attr[i];
        if (!listed(e->required, a->name) && !listed(e->optional, a->name)) {
            diag_line(l->diags, n->file, a->line, 0,
                      "unknown attribute '%s' of '%s', expected one of: %s%s%s", a->name, n->tag,
                      e->required, *e->required && *e->optional ? " " : "", e->optional);
            good = false;
        } else if (!check_value(l, n, a)) {
            good = false;
        }
    }
    return good;
}

static bool check_element(struct loader *l, const struct node *n, const struct element *e) {
    bool good = check_attributes(l, n, e);
    int semantics = 0;
    for (int i = 0; i < n->nchildren; i++) {
        const struct node *c = n->child[i];
        const struct element *ce = listed(e->children, c->tag) ? element_find(c->tag) : NULL;
        if (!ce) {
            diag_line(l->diags, c->file, c->line, 0, "element '%s' inside '%s', expected %s%s",
                      c->tag, n->tag, *e->children ? "one of: " : "no elements", e->children);
            good = false;
            continue;
        }
        semantics += !strcmp(c->tag, "semantics");
        good = check_element(l, c, ce) && good;
    }
    if (listed(e->children, "semantics") && semantics != 1) {
        diag_line(l->diags, n->file, n->line, 0, "%s '%s' has %d semantics, expected exactly one",
                  n->tag, node_attr(n, "id") ? node_attr(n, "id") : "", semantics);
        good = false;
    }
    return good;
}

/* ---- RELAX NG ---- */

struct hearing {
    struct loader *loader;
    const char *file;
    int heard;
};

static void on_schema_error(void *user, xmlErrorPtr e) {
    struct hearing *h = user;
    if (e->code == XML_ERR_NO_MEMORY && e->level == XML_ERR_FATAL) memory_exhausted(0);
    if (h->heard++ >= 8) return;
    char *text = arena_strdup(h->loader->arena, e->message ? e->message : "against the schema");
    text[strcspn(text, "\n")] = 0;
    text[0] = (char)tolower((unsigned char)text[0]);
    diag_line(h->loader->diags, h->file, e->line, 0,
              "%s; in an instruction or move the order is doc semantics operand require need loop "
              "emit, in a sync push pop",
              text);
}

/* The schema without the pattern of names, which is the first one: is_id has checked those that are
 * given, others must be given, and libxml2 compiles a pattern anew for each value. */
static char *schema_text(struct arena *a) {
    static const char begin[] = "<param name=\"pattern\">", end[] = "</param>";
    char *text = arena_strdup(a, machine_schema), *from = strstr(text, begin),
         *to = from ? strstr(from, end) : NULL;
    if (to) memset(from, ' ', (size_t)(to - from) + sizeof end - 1);
    return text;
}

static xmlRelaxNGPtr schema_of(struct loader *l, struct hearing *h) {
    if (l->schema) return l->schema;
    const char *text = schema_text(l->arena);
    xmlRelaxNGParserCtxtPtr p = xmlRelaxNGNewMemParserCtxt(text, (int)strlen(text));
    if (!p) return NULL;
    xmlRelaxNGSetParserStructuredErrors(p, on_schema_error, h);
    l->schema = xmlRelaxNGParse(p);
    xmlRelaxNGFreeParserCtxt(p);
    return l->schema;
}

bool tree_validate(struct loader *l, void *doc, const char *file, const struct node *root) {
    struct hearing h = {l, file, 0};
    if (strcmp(root->tag, "machine")) {
        diag_line(l->diags, file, root->line, 0, "root element '%s', expected 'machine'",
                  root->tag);
        return false;
    }
    if (!check_element(l, root, element_find("machine"))) return false;
    xmlRelaxNGPtr schema = schema_of(l, &h);
    xmlRelaxNGValidCtxtPtr v = schema ? xmlRelaxNGNewValidCtxt(schema) : NULL;
    if (!v) {
        diag_line(l->diags, file, 0, 0,
                  "the machine schema cannot be used, expected libxml2 with RELAX NG");
        return false;
    }
    xmlRelaxNGSetValidStructuredErrors(v, on_schema_error, &h);
    int result = xmlRelaxNGValidateDoc(v, doc);
    xmlRelaxNGFreeValidCtxt(v);
    if (result && !h.heard)
        diag_line(l->diags, file, root->line, 0,
                  "the file does not follow the machine schema, expected what "
                  "docs/machine-format.md says");
    return result == 0;
}
