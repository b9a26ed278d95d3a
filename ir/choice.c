#include "ir/choice.h"
#include "ir/file.h"
#include "ir/memory.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const question_name[QUESTION_COUNT] = {
#define X(id, name) #name,
    QUESTION_TABLE(X)
#undef X
};

/* One answer, as a line of a trace: `kind "subject" "answer"`. */
struct answer {
    const char *kind, *subject, *text;
    int line;
    bool used; /* of a guide's */
};

struct decider {
    struct arena arena;
    const struct approach *approach; /* NULL: replaying */
    void *state;
    const char *file;      /* of the trace replayed, or of the guide */
    struct answer *answer; /* recorded; when replaying those of the trace */
    int n, cap, next;
    struct answer *guide; /* answers to some questions; the others are the approach's */
    int nguide;
    struct put_question *asked;
    int nasked, asked_cap;
    struct answer *preferred;
    int npreferred, preferred_cap;
    const char *failure;
    int failure_line;
};

static struct decider *decider_new(void) {
    struct decider *d = memory_array(1, sizeof *d);
    arena_init(&d->arena);
    return d;
}

struct decider *decider_open(const struct approach *approach, uint64_t seed) {
    struct decider *d = decider_new();
    d->approach = approach;
    d->state = approach->open(seed);
    return d;
}

void decider_close(struct decider *d) {
    if (!d) return;
    if (d->approach && d->approach->close) d->approach->close(d->state);
    arena_free(&d->arena);
    free(d);
}

static struct answer *add(struct decider *d) {
    if (d->n == d->cap) GROW(&d->arena, d->answer, d->n, d->cap);
    return &d->answer[d->n++];
}

/* A quoted string without quotes, backslashes and control characters inside; advances *s. NULL: not
 * one. */
static const char *quoted(struct arena *a, const char **s) {
    while (**s == ' ') ++*s;
    if (**s != '"') return NULL;
    const char *begin = ++*s;
    while (**s && **s != '"' && **s != '\n') ++*s;
    if (**s != '"') return NULL;
    return arena_strndup(a, begin, (size_t)((*s)++ - begin));
}

static bool parse_line(struct decider *d, const char *line, int number) {
    const char *s = line;
    while (*s && *s != ' ') s++;
    struct answer x = {.kind = arena_strndup(&d->arena, line, (size_t)(s - line)), .line = number};
    bool known = false;
    for (int k = 0; k < QUESTION_COUNT; k++) known = known || strcmp(x.kind, question_name[k]) == 0;
    x.subject = quoted(&d->arena, &s);
    x.text = x.subject ? quoted(&d->arena, &s) : NULL;
    if (!known || !x.text || *s) return false;
    *add(d) = x;
    return true;
}

struct decider *decider_replay(const char *file, struct diags *diags) {
    struct decider *d = decider_new();
    size_t length;
    d->file = arena_strdup(&d->arena, file);
    char *text = file_read(&d->arena, file, 16u << 20, &length, diags);
    int line = 0;
    for (char *s = text; s && *s;) {
        char *end = strchr(s, '\n');
        if (end) *end = 0;
        line++;
        if (*s && *s != '#' && !parse_line(d, s, line)) {
            diag_line(diags, file, line, 1,
                      "not an answer; expected QUESTION \"SUBJECT\" \"ANSWER\"");
            text = NULL;
        }
        s = end ? end + 1 : s + strlen(s);
    }
    if (text) return d;
    decider_close(d);
    return NULL;
}

struct decider *decider_guide(const char *file, const struct approach *approach, uint64_t seed,
                              struct diags *diags) {
    struct decider *d = decider_replay(file, diags);
    if (!d) return NULL;
    d->guide = d->answer;
    d->nguide = d->n;
    d->answer = NULL;
    d->n = d->cap = 0;
    d->approach = approach;
    d->state = approach->open(seed);
    return d;
}

static void fail(struct decider *d, int line, const char *text) {
    if (d->failure) return;
    d->failure = text;
    d->failure_line = line;
}

/* The next recorded answer, if it answers this question. */
static const struct answer *recorded(struct decider *d, enum question_kind kind,
                                     const char *subject) {
    if (d->next >= d->n) {
        fail(d, d->n ? d->answer[d->n - 1].line + 1 : 1,
             arena_printf(&d->arena, "the trace ends; expected an answer to %s \"%s\"",
                          question_name[kind], subject));
        return NULL;
    }
    const struct answer *x = &d->answer[d->next++];
    if (strcmp(x->kind, question_name[kind]) == 0 && strcmp(x->subject, subject) == 0) return x;
    fail(d, x->line,
         arena_printf(&d->arena, "the answer is to %s \"%s\"; expected %s \"%s\"", x->kind,
                      x->subject, question_name[kind], subject));
    return NULL;
}

static const struct answer *guided(struct decider *d, enum question_kind kind,
                                   const char *subject) {
    for (int i = 0; i < d->nguide; i++) {
        struct answer *x = &d->guide[i];
        if (x->used || strcmp(x->kind, question_name[kind]) != 0 ||
            strcmp(x->subject, subject) != 0)
            continue;
        x->used = true;
        return x;
    }
    return NULL;
}

static const struct answer *answer_to(struct decider *d, enum question_kind kind,
                                      const char *subject) {
    return d->approach ? guided(d, kind, subject) : recorded(d, kind, subject);
}

static void record(struct decider *d, enum question_kind kind, const char *subject,
                   const char *text) {
    struct answer *x = add(d);
    *x = (struct answer){question_name[kind], arena_strdup(&d->arena, subject),
                         arena_strdup(&d->arena, text), 0, false};
}

/* ---- again, with other prices ---- */

const struct put_question *decider_asked(const struct decider *d, int *n) {
    *n = d->nasked;
    return d->asked;
}

int decider_prefer(struct decider *d, enum question_kind kind, const char *subject,
                   const char *text) {
    GROW(&d->arena, d->preferred, d->npreferred, d->preferred_cap);
    d->preferred[d->npreferred] =
        (struct answer){question_name[kind], arena_strdup(&d->arena, subject),
                        arena_strdup(&d->arena, text), 0, false};
    return d->npreferred++;
}

int decider_preferred(const struct decider *d) {
    return d->npreferred;
}

bool decider_by_cost(const struct decider *d) {
    return d->approach && d->approach->by_cost && !d->nguide;
}

void decider_again(struct decider *d, int keep) {
    d->n = d->nasked = 0;
    d->npreferred = keep;
    d->failure = NULL;
    for (int i = 0; i < d->nguide; i++) d->guide[i].used = false;
}

struct decider_mark decider_mark(struct decider *d) {
    return (struct decider_mark){
        .answer = arena_copy(&d->arena, d->answer, sizeof *d->answer * (size_t)d->n),
        .guide = arena_copy(&d->arena, d->guide, sizeof *d->guide * (size_t)d->nguide),
        .preferred =
            arena_copy(&d->arena, d->preferred, sizeof *d->preferred * (size_t)d->npreferred),
        .n = d->n,
        .npreferred = d->npreferred};
}

void decider_back(struct decider *d, const struct decider_mark *to) {
    d->n = to->n;
    d->failure = NULL;
    d->npreferred = to->npreferred;
    if (to->n) memcpy(d->answer, to->answer, sizeof *d->answer * (size_t)to->n);
    if (to->npreferred)
        memcpy(d->preferred, to->preferred, sizeof *d->preferred * (size_t)to->npreferred);
    if (d->nguide) memcpy(d->guide, to->guide, sizeof *d->guide * (size_t)d->nguide);
}

static void keep_asked(struct decider *d, const struct question *q, int answer) {
    bool of_statements =
        q->kind == QUESTION_COVER || q->kind == QUESTION_MAPPING || q->kind == QUESTION_FUSION;
    if (!d->approach->by_cost || !of_statements || q->ncandidates < 2) return;
    GROW(&d->arena, d->asked, d->nasked, d->asked_cap);
    struct put_question *a = &d->asked[d->nasked++];
    *a = (struct put_question){q->kind,
                               arena_strdup(&d->arena, q->subject),
                               q->ncandidates,
                               answer,
                               arena_array(&d->arena, (size_t)q->ncandidates, sizeof *a->text),
                               arena_array(&d->arena, (size_t)q->ncandidates, sizeof *a->cost),
                               arena_array(&d->arena, (size_t)q->ncandidates, sizeof *a->alike)};
    for (int i = 0; i < q->ncandidates; i++) {
        a->text[i] = arena_strdup(&d->arena, q->candidate[i].text);
        a->cost[i] = q->candidate[i].cost;
        a->alike[i] = q->alike && q->alike[i];
    }
}

/* The approach's answer, where a candidate that is preferred costs less than any. */
static int ask_approach(struct decider *d, const struct question *q) {
    struct question asked = *q;
    const struct answer *x = NULL; /* the last that concerns it */
    for (int k = 0; k < d->npreferred; k++)
        if (strcmp(d->preferred[k].kind, question_name[q->kind]) == 0 &&
            strcmp(d->preferred[k].subject, q->subject) == 0)
            x = &d->preferred[k];
    if (x) {
        struct candidate *c =
            arena_copy(&d->arena, q->candidate, sizeof *c * (size_t)q->ncandidates);
        for (int i = 0; i < q->ncandidates; i++)
            if (strcmp(c[i].text, x->text) == 0) c[i].cost = -INFINITY;
        asked.candidate = c;
    }
    int i = q->ncandidates > 1 ? d->approach->choose(d->state, &asked) : 0;
    assert(i >= 0 && i < q->ncandidates);
    keep_asked(d, q, i);
    return i;
}

int decide(struct decider *d, const struct question *q) {
    assert(q->ncandidates > 0);
    const struct answer *x = answer_to(d, q->kind, q->subject);
    if (d->approach && !x) {
        int i = ask_approach(d, q);
        record(d, q->kind, q->subject, q->candidate[i].text);
        return i;
    }
    for (int i = 0; x && i < q->ncandidates; i++) {
        if (strcmp(q->candidate[i].text, x->text) != 0) continue;
        if (d->approach) record(d, q->kind, q->subject, x->text);
        return i;
    }
    if (x)
        fail(d, x->line,
             arena_printf(&d->arena, "'%s' is no candidate for %s \"%s\" here", x->text, x->kind,
                          x->subject));
    return 0;
}

void decider_outcome(struct decider *d, double cost) {
    if (d->approach && d->approach->outcome) d->approach->outcome(d->state, cost);
}

/* "i=16 j=32" */
static void print_point(const struct space *s, const int *at, struct text *t) {
    for (int v = 0; v < s->nvars; v++)
        text_printf(t, "%s%s=%lld", v ? " " : "", s->var[v], (long long)s->value[v][at[v]]);
    if (!s->nvars) text_append(t, "", 0);
}

static bool parse_point(const struct space *s, const char *text, int *at) {
    for (int v = 0; v < s->nvars; v++) {
        size_t n = strlen(s->var[v]);
        if (v && *text++ != ' ') return false;
        if (strncmp(text, s->var[v], n) != 0 || text[n] != '=') return false;
        char *end;
        errno = 0;
        long long value = strtoll(text + n + 1, &end, 10);
        if (errno || end == text + n + 1) return false;
        text = end;
        at[v] = -1;
        for (int i = 0; i < s->nvalues[v]; i++)
            if (s->value[v][i] == value) at[v] = i;
        if (at[v] < 0) return false;
    }
    return *text == 0;
}

void decide_point(struct decider *d, const struct space *s, int *at) {
    memcpy(at, s->start, (size_t)s->nvars * sizeof *at);
    const struct answer *x = answer_to(d, s->kind, s->subject);
    if (d->approach && !x) {
        if (s->nvars && d->approach->move) d->approach->move(d->state, s, at);
        struct text t = {0};
        print_point(s, at, &t);
        record(d, s->kind, s->subject, t.at ? t.at : "");
        text_free(&t);
        return;
    }
    if (!x) return;
    if (parse_point(s, x->text, at) && s->cost(s->user, at) < 1e300) {
        if (d->approach) record(d, s->kind, s->subject, x->text);
        return;
    }
    memcpy(at, s->start, (size_t)s->nvars * sizeof *at);
    fail(d, x->line,
         arena_printf(&d->arena, "'%s' is no legal point for %s \"%s\" here", x->text, x->kind,
                      x->subject));
}

bool decider_save(const struct decider *d, const char *file, struct diags *diags) {
    struct output *o = output_open(file, diags);
    if (!o) return false;
    fprintf(o->file, "# decisions: QUESTION \"SUBJECT\" \"ANSWER\"\n");
    for (int i = 0; i < d->n; i++)
        fprintf(o->file, "%s \"%s\" \"%s\"\n", d->answer[i].kind, d->answer[i].subject,
                d->answer[i].text);
    return output_close(o, true, diags);
}

bool decider_failed(const struct decider *d, struct diags *diags) {
    if (!d->approach && !d->failure && d->next < d->n) {
        diag_line(diags, d->file, d->answer[d->next].line, 1,
                  "nobody asked for this answer; the trace belongs to another program, machine or "
                  "version");
        return true;
    }
    for (int i = 0; i < d->nguide && !d->failure; i++)
        if (!d->guide[i].used) {
            diag_line(diags, d->file, d->guide[i].line, 1,
                      "nobody asked for this answer, or not so often");
            return true;
        }
    if (d->failure) diag_line(diags, d->file, d->failure_line, 1, "%s", d->failure);
    return d->failure != NULL;
}
