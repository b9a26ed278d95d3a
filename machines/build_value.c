#include "machines/build.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

static const char *const kind_name[KIND_COUNT] = {
    "unit",      "memory",  "bus",      "queue",
    "sync",      "state",   "format",   "instruction or move",
    "configure", "feature", "fallback", "param",
    "prelude",   "begin",   "end",      "measure"};
const char *const language_name[LANGUAGE_COUNT] = {"llvm", "c", "cuda", "bits"};

static bool build_env_name(void *user, const char *name, const char *field, double *out) {
    const struct build *b = user;
    for (int i = 0; !field && i < b->m->nparams; i++)
        if (!strcmp(b->m->param[i].name, name)) {
            *out = (double)b->m->param[i].value;
            return true;
        }
    return false;
}

static bool value_of(struct build *b, const struct node *n, const char *attr, double *out) {
    const char *text = node_attr(n, attr);
    int line = node_attr_line(n, attr);
    struct mexpr_env env = {build_env_name, NULL, b};
    const struct mexpr *missing, *e = mexpr_parse(b->arena, text, n->file, line, b->diags);
    if (!e) return false;
    if (mexpr_eval(e, &env, out, &missing)) return true;
    if (missing && (missing->kind == MEXPR_NAME || missing->kind == MEXPR_CALL))
        diag_line(b->diags, n->file, line, 0,
                  "%s '%s' of '%s': '%s' has no value here, expected a parameter declared above",
                  attr, text, n->tag, missing->name);
    else
        diag_line(b->diags, n->file, line, 0, "%s '%s' of '%s' has no value, expected a number",
                  attr, text, n->tag);
    return false;
}

int64_t build_int(struct build *b, const struct node *n, const char *attr, int64_t otherwise,
                  int64_t low) {
    double v;
    if (!node_attr(n, attr) || !value_of(b, n, attr, &v)) return otherwise;
    if (v == floor(v) && v >= (double)low && v <= 0x1p53) return (int64_t)v;
    diag_line(b->diags, n->file, node_attr_line(n, attr), 0,
              "%s '%s' of '%s' is %.17g, expected a whole number from %lld to 2^53", attr,
              node_attr(n, attr), n->tag, v, (long long)low);
    return otherwise;
}

double build_number(struct build *b, const struct node *n, const char *attr, double otherwise) {
    double v;
    if (!node_attr(n, attr) || !value_of(b, n, attr, &v)) return otherwise;
    if (v >= 0 && v < 1e18) return v;
    diag_line(b->diags, n->file, node_attr_line(n, attr), 0,
              "%s '%s' of '%s' is %.17g, expected a number from 0", attr, node_attr(n, attr),
              n->tag, v);
    return otherwise;
}

struct mexpr *build_expr(struct build *b, const struct node *n, const char *attr,
                         const char *otherwise) {
    const char *text = node_attr(n, attr);
    if (!text && !otherwise) return NULL;
    return mexpr_parse(b->arena, text ? text : otherwise, n->file, node_attr_line(n, attr),
                       b->diags);
}

/* "lo..hi", each an expression */
bool build_range(struct build *b, const struct node *n, const char *attr, int64_t *lo,
                 int64_t *hi) {
    const char *text = node_attr(n, attr), *dots = text ? strstr(text, "..") : NULL;
    struct attr part[2] = {{"from", NULL, node_attr_line(n, attr)},
                           {"to", NULL, node_attr_line(n, attr)}};
    struct node ends = {.tag = n->tag, .file = n->file, .line = n->line, .attr = part, .nattrs = 2};
    if (!dots) {
        diag_line(b->diags, n->file, part[0].line, 0,
                  "%s '%s' of '%s', expected a range such as 1..8", attr, text ? text : "", n->tag);
        return false;
    }
    part[0].value = arena_strndup(b->arena, text, (size_t)(dots - text));
    part[1].value = dots + 2;
    int before = b->diags->errors;
    *lo = build_int(b, &ends, "from", 0, INT32_MIN);
    *hi = build_int(b, &ends, "to", 0, INT32_MIN);
    if (b->diags->errors > before) return false;
    if (*lo <= *hi) return true;
    diag_line(b->diags, n->file, part[0].line, 0,
              "%s '%s' of '%s' is empty, expected the smaller end first", attr, text, n->tag);
    return false;
}

const char **build_words(struct build *b, const char *text, int *n) {
    static const char space[] = " \t\r\n";
    const char **out = NULL;
    int cap = 0;
    *n = 0;
    for (const char *p = text ? text : ""; *(p += strspn(p, space));) {
        size_t k = strcspn(p, space);
        GROW(b->arena, out, *n, cap);
        out[(*n)++] = arena_strndup(b->arena, p, k);
        p += k;
    }
    return out;
}

int build_find(const struct build *b, enum kind kind, const char *id) {
    for (int i = 0; i < b->n[kind]; i++)
        if (b->found[kind][i].id && !strcmp(b->found[kind][i].id, id)) return i;
    return -1;
}

static int find_or_report(struct build *b, const struct node *n, const char *attr, enum kind kind,
                          const char *id) {
    int i = build_find(b, kind, id);
    if (i >= 0) return i;
    struct text known = {0};
    for (int k = 0; k < b->n[kind] && k < 12; k++)
        if (b->found[kind][k].id && strcmp(b->found[kind][k].id, "*"))
            text_printf(&known, " %s", b->found[kind][k].id);
    if (kind == KIND_MEMORY)
        for (int k = 0; k < b->n[kind]; k++)
            for (int j = 0; j < b->found[kind][k].node->nchildren; j++) {
                const char *part = node_attr(b->found[kind][k].node->child[j], "id");
                if (!part || strcmp(part, id)) continue;
                diag_line(b->diags, n->file, node_attr_line(n, attr), 0,
                          "%s: '%s' is a part of memory '%s', expected a whole memory", attr, id,
                          b->found[kind][k].id);
                text_free(&known);
                return -1;
            }
    diag_line(b->diags, n->file, node_attr_line(n, attr), 0,
              "%s of '%s': no %s '%s', expected one of:%s", attr, n->tag, kind_name[kind], id,
              known.at ? known.at : " (the machine has none)");
    text_free(&known);
    return -1;
}

int build_ref(struct build *b, const struct node *n, const char *attr, enum kind kind) {
    const char *id = node_attr(n, attr);
    return id ? find_or_report(b, n, attr, kind, id) : -1;
}

int *build_refs(struct build *b, const struct node *n, const char *attr, enum kind kind, int *count,
                bool imm) {
    int words, *out;
    const char **word = build_words(b, node_attr(n, attr), &words);
    out = arena_array(b->arena, (size_t)words, sizeof *out);
    *count = 0;
    for (int i = 0; i < words; i++) {
        int r =
            imm && !strcmp(word[i], "imm") ? MEMORY_IMM : find_or_report(b, n, attr, kind, word[i]);
        if (r != -1) out[(*count)++] = r;
    }
    return out;
}

uint64_t build_features(struct build *b, const struct node *n, const char *attr) {
    int count;
    int *ref = build_refs(b, n, attr, KIND_FEATURE, &count, false);
    uint64_t set = 0;
    for (int i = 0; i < count; i++)
        if (ref[i] < 64) set |= UINT64_C(1) << ref[i];
    return set;
}

uint32_t build_types(struct build *b, const struct node *n) {
    int words;
    const char **word = build_words(b, node_attr(n, "types"), &words);
    uint32_t set = 0;
    for (int i = 0; i < words; i++) {
        enum type t;
        if (type_parse(word[i], strlen(word[i]), &t))
            set |= UINT32_C(1) << t;
        else
            diag_line(b->diags, n->file, node_attr_line(n, "types"), 0,
                      "unknown type '%s', expected f32, i8, u8 and the like", word[i]);
    }
    return set;
}

struct mexpr **build_list(struct build *b, const struct node *n, const char *attr, int *count) {
    const char *text = node_attr(n, attr);
    struct mexpr **out = NULL;
    int cap = 0, depth = 0;
    *count = 0;
    if (!text) return NULL;
    for (const char *start = text, *p = text;; p++) {
        depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
        if (*p && (*p != ',' || depth > 0)) continue;
        struct mexpr *e = mexpr_parse(b->arena, arena_strndup(b->arena, start, (size_t)(p - start)),
                                      n->file, node_attr_line(n, attr), b->diags);
        if (!e) {
            *count = 0;
            return NULL;
        }
        GROW(b->arena, out, *count, cap);
        out[(*count)++] = e;
        if (!*p) return out;
        start = p + 1;
    }
}

enum language build_language(const struct node *n) {
    const char *as = node_attr(n, "as");
    for (int i = 0; i < LANGUAGE_COUNT; i++)
        if (!strcmp(as, language_name[i])) return (enum language)i;
    return LANGUAGE_C; /* the schema allows no other */
}

bool build_pass(const struct node *n, enum pass *out) {
    const char *pass = node_attr(n, "pass");
    *out = !pass || *pass == 'p' ? PASS_POINTER : *pass == 'v' ? PASS_VALUE : PASS_NUMBER;
    return pass != NULL;
}

struct field *build_fields(struct build *b, const struct node *n, int *count) {
    struct field *out = arena_array(b->arena, (size_t)n->nchildren, sizeof *out);
    *count = 0;
    for (int i = 0; i < n->nchildren; i++) {
        const struct node *c = n->child[i];
        if (strcmp(c->tag, "field")) continue;
        struct field *f = &out[*count];
        *f = (struct field){.at = build_expr(b, c, "at", NULL),
                            .bits = build_expr(b, c, "bits", NULL),
                            .value = build_expr(b, c, "value", NULL),
                            .name = node_attr(c, "name"),
                            .place = {c->file, c->line}};
        const char *is_signed = node_attr(c, "signed");
        f->is_signed = is_signed && (*is_signed == 't' || *is_signed == '1');
        if (f->at && f->bits && f->value) ++*count;
    }
    return out;
}

static void build_words_of(struct build *b, const struct node *n, struct emit *e) {
    e->word = arena_array(b->arena, (size_t)n->nchildren, sizeof *e->word);
    for (int i = 0; i < n->nchildren; i++) {
        const struct node *c = n->child[i];
        struct word *w = &e->word[e->nwords++];
        w->bits = build_expr(b, c, "bits", NULL);
        w->at = build_expr(b, c, "at", NULL);
        w->format = build_ref(b, c, "format", KIND_FORMAT);
        w->place = (struct place_in_file){c->file, c->line};
        w->field = build_fields(b, c, &w->nfields);
        if (!node_attr(c, "bits") && !node_attr(c, "format"))
            diag_line(b->diags, c->file, c->line, 0,
                      "a word of unknown size, expected bits or format");
    }
}

bool header_is_name(const char *name, size_t n) {
    if (!n || *name == '/') return false;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)name[i]) && !strchr("_./+-", name[i])) return false;
        if (name[i] == '.' && i + 1 < n && name[i + 1] == '.') return false;
    }
    return true;
}

/* A file outside the include path, or a flag, is no name. */
static void check_names(struct build *b, const struct node *n, const struct emit *e) {
    if (e->header && !header_is_name(e->header, strlen(e->header)))
        diag_line(b->diags, n->file, node_attr_line(n, "header"), 0,
                  "header '%s', expected a name of the include path such as 'cblas.h'", e->header);
    size_t plain = e->library ? strspn(e->library, "abcdefghijklmnopqrstuvwxyz"
                                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-")
                              : 0;
    if (e->library && (!plain || e->library[plain] || *e->library == '-'))
        diag_line(b->diags, n->file, node_attr_line(n, "library"), 0,
                  "library '%s', expected a name such as 'openblas'", e->library);
}

static bool blank(const char *text) {
    return !text || !text[strspn(text, " \t\r\n")];
}

struct emit *build_emits(struct build *b, const struct node *parent, int *count) {
    struct emit *out = arena_array(b->arena, (size_t)parent->nchildren, sizeof *out);
    *count = 0;
    for (int i = 0; i < parent->nchildren; i++) {
        const struct node *c = parent->child[i];
        if (strcmp(c->tag, "emit")) continue;
        struct emit *e = &out[(*count)++];
        *e = (struct emit){.language = build_language(c),
                           .library = node_attr(c, "library"),
                           .header = node_attr(c, "header"),
                           .needs_features = build_features(b, parent, "needs"),
                           .text = c->text ? c->text : "",
                           .at = {c->file, c->text_line ? c->text_line : c->line}};
        check_names(b, c, e);
        for (int k = 0; k < *count - 1; k++)
            if (out[k].language == e->language)
                diag_line(b->diags, c->file, c->line, 0,
                          "a second emit as '%s', expected one for each language",
                          language_name[e->language]);
        if (e->language == LANGUAGE_BITS) {
            if (!blank(c->text))
                diag_line(b->diags, c->file, c->line, 0,
                          "text in an emit as 'bits', expected words");
            build_words_of(b, c, e);
        } else if (c->nchildren) {
            diag_line(b->diags, c->file, c->line, 0, "words in an emit as '%s', expected text",
                      language_name[e->language]);
        }
    }
    return out;
}
