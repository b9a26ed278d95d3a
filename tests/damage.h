/* Small damages to a good text, one at a time, and what is said of each. A piece (a word, a number,
 * a sign) is left out, stands twice, changes places with the next or is another; a number is also
 * one more, zero, below zero and too large. Kept is, for each sentence, how often it was said, and
 * a hash of where, with which names and numbers, and of which damage. ISAMAP_DAMAGES=1 prints each,
 * to compare two builds. */
#ifndef ISAMAP_TESTS_DAMAGE_H
#define ISAMAP_TESTS_DAMAGE_H

#include "tests/golden.h"

#include <ctype.h>

enum { MOST_PIECES = 4096, MOST_SENTENCES = 2048, DAMAGES = 7 };

struct piece {
    size_t at, n;
};

struct sentence {
    char *text;
    int times;
    uint32_t hash;
};

struct damaged {
    struct arena arena;
    const char *text;
    int npieces, nsentences, tried;
    struct piece piece[MOST_PIECES];
    struct sentence sentence[MOST_SENTENCES];
};

/* Reports on one damaged text by damage_said. */
typedef void damage_try(struct damaged *, void *user, const char *text);

static inline bool damage_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* `signs`: which other characters are pieces. With a quote among them only what stands in quotes.
 */
static inline void damage_pieces(struct damaged *d, const char *signs) {
    const char *text = d->text;
    bool quotes = strchr(signs, '"'), inside = !quotes;
    for (size_t k = 0; text[k] && d->npieces < MOST_PIECES;) {
        size_t n = 0;
        if (quotes && text[k] == '"') {
            inside = !inside;
            k++;
            continue;
        }
        if (!strncmp(text + k, "<!--", 4)) { /* a comment */
            k = (size_t)(strstr(text + k, "-->") + 3 - text);
            continue;
        }
        while (damage_word(text[k + n])) n++;
        if (!n && strchr(signs, text[k])) n = 1;
        if (n && inside) d->piece[d->npieces++] = (struct piece){k, n};
        k += n ? n : 1;
    }
}

/* What stands in the place of a piece; NULL: there is no such damage. */
static inline const char *damage_other(struct damaged *d, int k, int damage) {
    const char *mine = arena_strndup(&d->arena, d->text + d->piece[k].at, d->piece[k].n);
    bool number = isdigit((unsigned char)*mine), word = damage_word(*mine);
    if (damage == 0) return "";
    if (damage == 1) return arena_printf(&d->arena, "%s %s", mine, mine);
    if (damage == 2) return word && !number ? "q" : number ? "0" : NULL;
    if (number && damage == 3) return arena_printf(&d->arena, "%lld", atoll(mine) + 1);
    if (number && damage == 4) return arena_printf(&d->arena, "-%s", mine);
    if (number && damage == 5) return "99999999999999999999";
    if (!word || number || damage != 3) return NULL;
    for (int o = (k + 1) % d->npieces; o != k; o = (o + 1) % d->npieces) {
        const char *other = arena_strndup(&d->arena, d->text + d->piece[o].at, d->piece[o].n);
        if ((isalpha((unsigned char)*other) || *other == '_') && strcmp(other, mine) != 0)
            return other;
    }
    return NULL;
}

/* The text with the damage; NULL: there is no such damage. */
static inline const char *damage_text(struct damaged *d, int k, int damage) {
    struct piece a = d->piece[k], b = k + 1 < d->npieces ? d->piece[k + 1] : a;
    const char *t = d->text;
    if (damage == DAMAGES - 1)
        return a.at == b.at ? NULL
                            : arena_printf(&d->arena, "%.*s%.*s%.*s%.*s%s", (int)a.at, t, (int)b.n,
                                           t + b.at, (int)(b.at - a.at - a.n), t + a.at + a.n,
                                           (int)a.n, t + a.at, t + b.at + b.n);
    const char *other = damage_other(d, k, damage);
    return other ? arena_printf(&d->arena, "%.*s%s%s", (int)a.at, t, other, t + a.at + a.n) : NULL;
}

/* The text without its names and numbers, without which node it is about, and without lists. What
 * the XML library says of bad XML is its own. */
static inline char *damage_sentence(struct arena *arena, const char *text) {
    const char *list = strstr(text, " one of: "), *node = strstr(text, "): ");
    if (strstr(text, "expected well-formed XML")) return arena_strdup(arena, "no well-formed XML");
    if (strncmp(text, "node ", 5) == 0 && node) text = node + 3;
    char *bare = list && list > text ? arena_strndup(arena, text, (size_t)(list - text))
                                     : arena_strdup(arena, text);
    char *to = bare;
    for (const char *c = bare; *c; c++) {
        const char *end = *c == '\'' ? strchr(c + 1, '\'') : NULL;
        bool number = isdigit((unsigned char)*c);
        if (number && to > bare && to[-1] == '#') continue;
        *to++ = (char)(number ? '#' : *c == '\n' ? ' ' : *c);
        if (end) {
            *to++ = '\'';
            c = end;
        }
    }
    *to = 0;
    return bare;
}

/* `all` is hashed. */
static inline void damage_said(struct damaged *d, const char *text, const char *all) {
    char *bare = damage_sentence(&d->arena, text);
    int k = 0;
    if (strncmp(bare, "no well-formed", 14) == 0) all = "";
    while (k < d->nsentences && strcmp(d->sentence[k].text, bare) != 0) k++;
    assert_true(k < MOST_SENTENCES);
    if (k == d->nsentences) d->sentence[d->nsentences++] = (struct sentence){bare, 0, GOLDEN_HASH};
    struct sentence *s = &d->sentence[k];
    s->times++;
    if (getenv("ISAMAP_DAMAGES")) fprintf(stderr, "%d %s: %s\n", d->tried, bare, all);
    s->hash = golden_hash(golden_hash(s->hash, arena_printf(&d->arena, "%d ", d->tried)), all);
}

static inline void damage_diags(struct damaged *d, const struct diags *said) {
    for (int k = 0; k < said->n; k++) {
        const struct diag *x = &said->at[k];
        damage_said(d, x->text,
                    arena_printf(&d->arena, "%d:%d %d %s", x->line, x->col, x->warning, x->text));
    }
}

static inline int damage_compare(const void *a, const void *b) {
    return strcmp(((const struct sentence *)a)->text, ((const struct sentence *)b)->text);
}

static inline struct damaged *damage_open(void) {
    struct damaged *d = calloc(1, sizeof *d);
    assert_non_null(d);
    arena_init(&d->arena);
    return d;
}

/* Each `every`th damage to `text`. */
static inline void damage_all(struct damaged *d, const char *text, const char *signs, int every,
                              damage_try *each, void *user) {
    d->text = text;
    d->npieces = 0;
    damage_pieces(d, signs);
    for (int k = 0, n = 0; k < d->npieces; k++)
        for (int damage = 0; damage < DAMAGES; damage++) {
            const char *with = damage_text(d, k, damage);
            if (!with || n++ % every != 0) continue;
            d->tried++;
            each(d, user, with);
        }
}

/* The files that tests/data/golden/NAME.list names, a line each, one after the other: files that
 * are new beside them change nothing. */
static inline void damage_files(const char *name, void (*each)(void *user, const char *path),
                                void *user) {
    struct arena arena;
    struct diags d;
    size_t n;
    arena_init(&arena);
    diags_init(&d);
    const char *list = arena_printf(&arena, "tests/data/golden/%s.list", name);
    char *at = file_read(&arena, list, 1 << 20, &n, &d);
    assert_non_null(at);
    for (char *path = strtok(at, "\n"); path; path = strtok(NULL, "\n")) each(user, path);
    diags_free(&d);
    arena_free(&arena);
}

/* What was said of all, behind `name`; frees. */
static inline void damage_close(struct damaged *d, const char *name, struct text *seen) {
    qsort(d->sentence, (size_t)d->nsentences, sizeof *d->sentence, damage_compare);
    text_printf(seen, "%s: %d damages\n", name, d->tried);
    for (int k = 0; k < d->nsentences; k++)
        text_printf(seen, "%6d %08x %s\n", d->sentence[k].times, d->sentence[k].hash,
                    d->sentence[k].text);
    arena_free(&d->arena);
    free(d);
}

#endif
