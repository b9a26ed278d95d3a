#include "machines/tree.h"
#include "ir/memory.h"
#include <ctype.h>
#include <limits.h>
#include <libxml/parser.h>
#include <libxml/relaxng.h>
#include <string.h>

enum { FILE_LIMIT = 8 << 20, TREE_LIMIT = 64 << 20, MAX_ATTRS = 64 };

struct reading {
    struct loader *loader;
    const char *file, *xml;
    size_t length;
    size_t *line, nlines; /* where each line begins */
    size_t next;          /* behind the last start tag that the parser came to */
    bool doctype;
    startElementNsSAX2Func start;
};

void loader_init(struct loader *l, struct arena *arena, struct diags *diags) {
    *l = (struct loader){.arena = arena, .diags = diags};
}

void loader_free(struct loader *l) {
    if (l->schema) xmlRelaxNGFree(l->schema);
    l->schema = NULL;
}

/* ---- nodes ---- */

struct node *node_new(struct loader *l, const char *tag, const char *file, int line, int depth) {
    struct node *n = arena_alloc(l->arena, sizeof *n);
    *n = (struct node){.tag = tag, .file = file, .line = line, .depth = depth};
    l->bytes += sizeof *n;
    return n;
}

void node_add(struct loader *l, struct node *parent, struct node *child) {
    GROW(l->arena, parent->child, parent->nchildren, parent->cap);
    parent->child[parent->nchildren++] = child;
}

void node_set(struct loader *l, struct node *n, const char *name, const char *value) {
    for (int i = 0; i < n->nattrs; i++)
        if (!strcmp(n->attr[i].name, name)) {
            n->attr[i].value = value;
            return;
        }
    struct attr *grown = arena_array(l->arena, (size_t)n->nattrs + 1, sizeof *grown);
    if (n->nattrs) memcpy(grown, n->attr, (size_t)n->nattrs * sizeof *grown);
    grown[n->nattrs++] = (struct attr){name, value, n->line};
    n->attr = grown;
}

const char *node_attr(const struct node *n, const char *name) {
    for (int i = 0; i < n->nattrs; i++)
        if (!strcmp(n->attr[i].name, name)) return n->attr[i].value;
    return NULL;
}

int node_attr_line(const struct node *n, const char *name) {
    for (int i = 0; i < n->nattrs; i++)
        if (!strcmp(n->attr[i].name, name)) return n->attr[i].line;
    return n->line;
}

const char *node_key(const struct node *n) {
    return node_attr(n, strcmp(n->tag, "param") ? "id" : "name");
}

/* ---- places ---- */

static void index_lines(struct reading *r) {
    size_t n = 1;
    for (size_t i = 0; i < r->length; i++) n += r->xml[i] == '\n';
    r->line = arena_array(r->loader->arena, n, sizeof *r->line);
    r->nlines = 1;
    for (size_t i = 0; i < r->length; i++)
        if (r->xml[i] == '\n') r->line[r->nlines++] = i + 1;
}

static int line_at(const struct reading *r, size_t offset) {
    size_t lo = 0, hi = r->nlines;
    while (hi - lo > 1) {
        size_t middle = (lo + hi) / 2;
        *(r->line[middle] <= offset ? &lo : &hi) = middle;
    }
    return (int)lo + 1;
}

/* Walks a start tag from '<': the attribute `name`'s offset, or with name NULL the offset after
 * '>'. */
static size_t in_tag(const struct reading *r, size_t at, const char *name) {
    size_t n = name ? strlen(name) : 0;
    for (at++; at < r->length && r->xml[at] != '>'; at++) {
        char c = r->xml[at];
        if (c == '"' || c == '\'') {
            const char *end = memchr(r->xml + at + 1, c, r->length - at - 1);
            if (!end) return r->length;
            at = (size_t)(end - r->xml);
        } else if (name && isspace((unsigned char)r->xml[at - 1]) && at + n < r->length &&
                   !strncmp(r->xml + at, name, n) &&
                   (r->xml[at + n] == '=' || isspace((unsigned char)r->xml[at + n]))) {
            return at;
        }
    }
    return at < r->length ? at + 1 : at;
}

/* ---- text ---- */

static const struct {
    const char *entity;
    char means;
} entities[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};

static size_t entity_at(const char *at, char *means) {
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
        if (!strncmp(at, entities[i].entity, strlen(entities[i].entity))) {
            *means = entities[i].means;
            return strlen(entities[i].entity);
        }
    return 0;
}

/* Length of the markup at p that is no content; 0: none. Keeps track of CDATA sections. */
static size_t markup_at(const char *p, const char *end, bool *cdata) {
    if (*cdata) {
        if (strncmp(p, "]]>", 3)) return 0;
        *cdata = false;
        return 3;
    }
    if (!strncmp(p, "<![CDATA[", 9)) {
        *cdata = true;
        return 9;
    }
    if (strncmp(p, "<!--", 4)) return 0;
    const char *close = strstr(p, "-->");
    return close ? (size_t)(close + 3 - p) : (size_t)(end - p);
}

/* The content of an element without children, from `at` to its end tag, each character where it is
 * in the file: markup becomes blanks, a run of entities its characters at the run's end. */
static char *content_in_place(struct reading *r, size_t at) {
    const char *start = r->xml + at, *end = r->xml + r->length, *p = start;
    bool cdata = false;
    size_t n = 0, skip;
    while (p < end && ((skip = markup_at(p, end, &cdata)) || cdata || *p != '<'))
        p += skip ? skip : 1;
    char *out = arena_alloc(r->loader->arena, (size_t)(p - start) + 1);
    r->loader->bytes += (size_t)(p - start);
    for (end = p, p = start, cdata = false; p < end; p = start + n) {
        char run[64];
        size_t got = 0, length = 0, one;
        skip = markup_at(p, end, &cdata);
        for (size_t i = 0; i < skip; i++) out[n++] = p[i] == '\n' ? '\n' : ' ';
        if (skip) continue;
        while (!cdata && got < sizeof run && (one = entity_at(p + length, &run[got])))
            got++, length += one;
        memset(out + n, ' ', length - got);
        memcpy(out + n + length - got, run, got);
        n += length;
        if (!got) out[n++] = *p;
    }
    return out;
}

static char *content_as_read(struct loader *l, const xmlNode *x) {
    size_t n = 0;
    for (const xmlNode *c = x->children; c; c = c->next)
        if (c->type == XML_TEXT_NODE || c->type == XML_CDATA_SECTION_NODE)
            n += c->content ? strlen((const char *)c->content) : 0;
    char *out = arena_alloc(l->arena, n + 1), *to = out;
    for (const xmlNode *c = x->children; c; c = c->next)
        if ((c->type == XML_TEXT_NODE || c->type == XML_CDATA_SECTION_NODE) && c->content)
            to = stpcpy(to, (const char *)c->content);
    l->bytes += n;
    return out;
}

static void read_content(struct reading *r, struct node *n, const xmlNode *x, size_t tag) {
    size_t at = in_tag(r, tag, NULL);
    bool empty = at >= 2 && r->xml[at - 2] == '/';
    n->text_line = line_at(r, at);
    n->text_col = 1;
    for (size_t i = r->line[n->text_line - 1]; i < at; i++)
        n->text_col += ((unsigned char)r->xml[i] & 0xc0) != 0x80;
    if (empty)
        n->text = "";
    else
        n->text =
            strcmp(n->tag, "semantics") ? content_as_read(r->loader, x) : content_in_place(r, at);
}

/* ---- libxml2 ---- */

static bool has_text(const char *tag) {
    static const char *const with_text[] = {"semantics", "emit", "prelude", "doc", "measure"};
    for (size_t i = 0; i < sizeof with_text / sizeof *with_text; i++)
        if (!strcmp(tag, with_text[i])) return true;
    return false;
}

static bool read_attributes(struct reading *r, struct node *n, const xmlNode *x, size_t tag) {
    struct loader *l = r->loader;
    for (const xmlAttr *a = x->properties; a; a = a->next) n->nattrs++;
    if (l->bytes > TREE_LIMIT) {
        diag_line(l->diags, r->file, n->line, 0,
                  "the machine grows beyond %d MiB here, expected a smaller file",
                  TREE_LIMIT >> 20);
        return false;
    }
    n->attr = arena_array(l->arena, (size_t)n->nattrs, sizeof *n->attr);
    struct attr *to = n->attr;
    for (const xmlAttr *a = x->properties; a; a = a->next, to++) {
        xmlChar *value = xmlNodeListGetString(x->doc, a->children, 1);
        to->name = a->ns ? arena_printf(l->arena, "%s:%s",
                                        a->ns->prefix ? (const char *)a->ns->prefix : "",
                                        (const char *)a->name)
                         : arena_strdup(l->arena, (const char *)a->name);
        to->value = arena_strdup(l->arena, value ? (const char *)value : "");
        to->line = line_at(r, in_tag(r, tag, to->name));
        l->bytes += sizeof *to + strlen(to->value);
        xmlFree(value);
    }
    return true;
}

static struct node *convert(struct reading *r, const xmlNode *x, int depth) {
    struct loader *l = r->loader;
    size_t tag = (size_t)(uintptr_t)x->_private;
    const char *ns = x->ns ? (const char *)x->ns->href : "";
    struct node *n =
        node_new(l, arena_strdup(l->arena, (const char *)x->name), r->file, line_at(r, tag), depth);
    static const char family[] = "urn:isamap:machine:";
    if (!strncmp(ns, family, sizeof family - 1) && strcmp(ns + sizeof family - 1, "1")) {
        diag_line(
            l->diags, r->file, n->line, 0,
            "element '%s' is of version '%s' of the machine format, this isamap reads version 1",
            n->tag, ns + sizeof family - 1);
        return NULL;
    }
    if (strcmp(ns, "urn:isamap:machine:1")) {
        diag_line(l->diags, r->file, n->line, 0,
                  "element '%s' is in namespace '%s', expected xmlns=\"urn:isamap:machine:1\" on "
                  "the machine element",
                  n->tag, ns);
        return NULL;
    }
    if (!read_attributes(r, n, x, tag)) return NULL;
    if (has_text(n->tag)) read_content(r, n, x, tag);
    for (const xmlNode *c = x->children; c; c = c->next) {
        if (c->type == XML_ELEMENT_NODE) {
            struct node *child = convert(r, c, depth);
            if (!child) return NULL;
            node_add(l, n, child);
        } else if ((c->type == XML_TEXT_NODE || c->type == XML_CDATA_SECTION_NODE) &&
                   !has_text(n->tag) && c->content) {
            const char *t = (const char *)c->content;
            t += strspn(t, " \t\r\n");
            if (!*t) continue;
            diag_line(l->diags, r->file, n->line, 0,
                      "text '%.20s' inside element '%s', expected only elements", t, n->tag);
            return NULL;
        }
    }
    return n;
}

static void on_error(void *user, xmlErrorPtr e) {
    struct reading *r = ((xmlParserCtxtPtr)user)->_private;
    if (e->code == XML_ERR_NO_MEMORY) memory_exhausted(0);
    if (r->doctype || !r->loader->diags) return;
    char *text = arena_strdup(r->loader->arena, e->message ? e->message : "not XML");
    text[strcspn(text, "\n")] = 0;
    text[0] = (char)tolower((unsigned char)text[0]);
    if (e->level == XML_ERR_WARNING)
        diag_warn(r->loader->diags, r->file, e->line, e->int2, "%s", text);
    else
        diag_line(r->loader->diags, r->file, e->line, e->int2, "%s, expected well-formed XML",
                  text);
}

static void on_doctype(void *user, const xmlChar *name, const xmlChar *external,
                       const xmlChar *system) {
    (void)name, (void)external, (void)system;
    xmlParserCtxtPtr c = user;
    struct reading *r = c->_private;
    if (!r->doctype && r->loader->diags)
        diag_line(r->loader->diags, r->file, xmlSAX2GetLineNumber(c), 0,
                  "a document type declaration, expected none: machine files have no entities of "
                  "their own");
    r->doctype = true;
    xmlStopParser(c);
}

/* After the markup at p that is no tag, or p itself. */
static const char *skip_other_markup(const char *p) {
    static const char *const ends[][2] = {{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}};
    for (int i = 0; i < 3; i++)
        if (!strncmp(p, ends[i][0], strlen(ends[i][0]))) {
            const char *end = strstr(p, ends[i][1]);
            return end ? end : p + strlen(p);
        }
    return p;
}

/* Where the next start tag begins. Elements come in the order of the file, which has no entities of
 * its own; what the parser has consumed is no place to look at, as it reads ahead. */
static size_t next_tag(struct reading *r) {
    const char *p = r->xml + r->next, *end = r->xml + r->length;
    for (const char *over; p < end && (p = memchr(p, '<', (size_t)(end - p))); p = over) {
        over = skip_other_markup(p);
        if (over > p) continue;
        if (p[1] != '/') break;
        over = p + 1;
    }
    size_t at = p && p < end ? (size_t)(p - r->xml) : r->length;
    r->next = in_tag(r, at, NULL);
    return at;
}

static void on_start(void *user, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri,
                     int nns, const xmlChar **ns, int nattrs, int ndefaulted,
                     const xmlChar **attrs) {
    xmlParserCtxtPtr c = user;
    struct reading *r = c->_private;
    r->start(user, name, prefix, uri, nns, ns, nattrs, ndefaulted, attrs);
    size_t at = next_tag(r);
    if (c->node) c->node->_private = (void *)(uintptr_t)at;
}

/* libxml2 needs quadratic time for the attributes of one element, so the number is limited before.
 */
static bool tags_are_small(struct reading *r) {
    for (const char *p = r->xml; (p = strchr(p, '<'));) {
        const char *q = skip_other_markup(p);
        int quoted = 0;
        for (; q == p || (*q && *q != '>' && *q != '<' && quoted <= MAX_ATTRS); q++) {
            if (*q != '"' && *q != '\'') continue;
            const char *end = strchr(q + 1, *q);
            if (!end) return true;
            quoted++;
            q = end;
        }
        if (quoted > MAX_ATTRS) {
            if (r->loader->diags)
                diag_line(r->loader->diags, r->file, line_at(r, (size_t)(p - r->xml)), 0,
                          "an element with more than %d attributes, expected fewer", MAX_ATTRS);
            return false;
        }
        p = q;
    }
    return true;
}

static xmlDocPtr parse(struct reading *r) {
    index_lines(r);
    xmlParserCtxtPtr c = tags_are_small(r) ? xmlNewParserCtxt() : NULL;
    if (!c) return NULL;
    c->_private = r;
    r->start = c->sax->startElementNs;
    c->sax->startElementNs = on_start;
    c->sax->serror = on_error;
    c->sax->internalSubset = on_doctype;
    int options = XML_PARSE_NONET | XML_PARSE_NOCDATA | XML_PARSE_BIG_LINES | XML_PARSE_COMPACT;
    xmlDocPtr doc = xmlCtxtReadMemory(c, r->xml, (int)r->length, r->file, "UTF-8", options);
    if (doc && (!c->wellFormed || r->doctype)) {
        xmlFreeDoc(doc);
        doc = NULL;
    }
    xmlFreeParserCtxt(c);
    return doc;
}

static bool is_utf8(const char *s, size_t n) {
    return !memchr(s, 0, n) && xmlCheckUTF8((const xmlChar *)s);
}

struct node *tree_read(struct loader *l, const char *file, const char *xml, size_t length,
                       int depth) {
    char *copy = arena_strndup(l->arena, xml, length);
    struct reading r = {.loader = l, .file = file, .xml = copy, .length = length};
    if (length > FILE_LIMIT || (l->bytes += length) > TREE_LIMIT) {
        diag_line(l->diags, file, 0, 0, "%zu bytes, expected a machine file of at most %d", length,
                  FILE_LIMIT);
        return NULL;
    }
    if (strlen(copy) != length || !is_utf8(copy, length)) {
        diag_line(l->diags, file, 1, 0, "not UTF-8 text, expected an XML file in UTF-8");
        return NULL;
    }
    int before = l->diags->errors;
    xmlDocPtr doc = parse(&r);
    if (!doc) {
        if (l->diags->errors == before)
            diag_line(l->diags, file, 1, 0, "not XML, expected a machine file");
        return NULL;
    }
    struct node *root = NULL;
    const xmlNode *top = xmlDocGetRootElement(doc);
    if (top) root = convert(&r, top, depth);
    if (root && !tree_validate(l, doc, file, root)) root = NULL;
    xmlFreeDoc(doc);
    return root;
}

/* The file up to the end of its first start tag, as a whole element. */
static struct reading only_first_tag(struct loader *l, const char *file, const char *xml,
                                     size_t length) {
    struct reading r = {.loader = l, .file = file, .xml = xml, .length = length};
    next_tag(&r);
    size_t end = r.next > 1 ? r.next - 1 : 0;
    bool empty = end && xml[end - 1] == '/';
    r.xml = arena_printf(l->arena, "%.*s%s", (int)end, xml, empty ? ">" : "/>");
    r.length = strlen(r.xml);
    r.next = 0;
    return r;
}

struct node *tree_peek(struct loader *l, const char *file) {
    size_t length;
    struct diags ignored;
    diags_init(&ignored);
    struct diags *saved = l->diags;
    l->diags = &ignored;
    struct node *root = NULL;
    char *xml = file_read(l->arena, file, FILE_LIMIT, &length, &ignored);
    if (xml && !memchr(xml, 0, length) && is_utf8(xml, length)) {
        struct reading r = only_first_tag(l, file, xml, length);
        xmlDocPtr doc = parse(&r);
        const xmlNode *top = doc ? xmlDocGetRootElement(doc) : NULL;
        if (top && !strcmp((const char *)top->name, "machine")) {
            root = node_new(l, "machine", file, 1, 0);
            if (!read_attributes(&r, root, top, (size_t)(uintptr_t)top->_private)) root = NULL;
        }
        xmlFreeDoc(doc);
    }
    l->diags = saved;
    diags_free(&ignored);
    return root;
}

struct node *tree_parse(struct loader *l, const char *file, const char *xml, size_t length) {
    char real[PATH_MAX];
    struct node *raw = tree_read(l, file, xml, length, 0);
    if (!raw) return NULL;
    l->stack[0] = arena_strdup(l->arena, realpath(file, real) ? real : file);
    l->nstack = 1;
    struct node *out = node_new(l, raw->tag, raw->file, raw->line, 0);
    l->root = out;
    return tree_expand(l, raw, out) ? out : NULL;
}

struct node *tree_load(struct loader *l, const char *file) {
    size_t length;
    char *xml = file_read(l->arena, file, FILE_LIMIT, &length, l->diags);
    return xml ? tree_parse(l, arena_strdup(l->arena, file), xml, length) : NULL;
}
