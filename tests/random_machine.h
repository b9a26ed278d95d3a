/* Machine files varied at random: numbers of theirs are others, as they would be on the next
 * hardware. What comes out may be refused by the checker. */
#ifndef ISAMAP_TESTS_RANDOM_MACHINE_H
#define ISAMAP_TESTS_RANDOM_MACHINE_H

#include "ir/arena.h"
#include "tests/random/tape.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 256, VALUES = 5 };

/* An attribute of an element, and what it becomes: a number, or a part or a multiple of what it is.
 * Attributes that are not there are written. */
struct variation {
    const char *element, *attribute;
    const char *value[VALUES];
};

static const char another_queue[] = "another queue";

static const struct variation variations[] = {
    {"sync", "depth", {"1", "2", "3", "4", "8"}},
    {"queue", "depth", {"2", "3", "4", "8", "64"}},
    {"memory", "size", {"/2", "/4", "*2", "/8", "*4"}},
    {"memory", "banks", {"1", "2", "4", "8", "16"}},
    {"memory", "align", {"16", "32", "64", "128", "256"}},
    {"param", "value", {"/2", "/4", "*2", "/8", "*4"}},
    {"move", "latency", {"0", "1", "7", "40", "300"}},
    {"move", "blocking", {"true"}},
    {"move", "overhead", {"0", "1", "9", "100", "1000"}},
    {"instruction", "latency", {"0", "1", "7", "40", "300"}},
    {"instruction", "interval", {"1", "2", "8", "50", "400"}},
    {"instruction", "blocking", {"true"}},
    {"unit", "count", {"1", "2", "3", "4"}},
    {"sync", "depth", {"1"}},
    {"instruction", "queue", {another_queue}},
    {"move", "queue", {another_queue}},
};

/* Starts of the element's tags. */
static int tags_of(const char *text, const char *element, const char **tag) {
    char start[32];
    int n = 0;
    size_t length = (size_t)snprintf(start, sizeof start, "<%s", element);
    for (const char *at = text; n < PLACES && (at = strstr(at, start)); at += length)
        if (isspace((unsigned char)at[length])) tag[n++] = at;
    return n;
}

/* The attribute's value in the tag; NULL: it has none. */
static const char *value_in(const char *tag, const char *attribute, size_t *length) {
    char name[32];
    const char *end = strchr(tag, '>');
    snprintf(name, sizeof name, " %s=\"", attribute);
    const char *at = strstr(tag, name);
    if (!at || !end || at > end) return NULL;
    at += strlen(name);
    *length = strcspn(at, "\"");
    return at;
}

/* The name of some queue of the text, "" without any: two things share it. */
static void pick_queue(const char *text, struct tape *tape, char *out, size_t room) {
    const char *tag[PLACES];
    size_t length = 0;
    int n = tags_of(text, "queue", tag);
    const char *id = n ? value_in(tag[pick(tape, n)], "id", &length) : NULL;
    snprintf(out, room, "%.*s", (int)length, id ? id : "");
}

/* The text with another value of the tag's attribute: `to`, or so many times what it is ("*2",
 * "/4"). From the heap; NULL: it is no number. */
static char *set_value(const char *text, const char *tag, const char *element,
                       const char *attribute, const char *to) {
    size_t length = 0;
    const char *old = value_in(tag, attribute, &length);
    bool part = *to == '/' || *to == '*';
    if (part && (!old || !isdigit((unsigned char)*old) || strcspn(old, "$(") < length)) return NULL;
    struct text out = {0};
    const char *from = old ? old : tag + 1 + strlen(element), *rest = old ? old + length : from;
    text_append(&out, text, (size_t)(from - text));
    if (part) {
        char *unit;
        long value = strtol(old, &unit, 10), by = strtol(to + 1, NULL, 10);
        value = *to == '*' ? value * by : value / by;
        text_printf(&out, "%ld", value > 0 ? value : 1);
        text_append(&out, unit, length - (size_t)(unit - old));
    } else {
        text_printf(&out, old ? "%s" : " %s=\"%s\"", old ? to : attribute, to);
    }
    text_append(&out, rest, strlen(rest) + 1);
    return out.at;
}

static void say_value(struct text *what, const char *tag, const char *attribute, const char *to) {
    int shown = (int)strcspn(tag, ">");
    text_printf(what, " %s=\"%s\" in '%.*s';", attribute, to, shown < 40 ? shown : 40, tag);
}

/* One number of the text is another; *what says which. From the heap; NULL: there was none. */
static char *vary_once(const char *text, struct tape *tape, struct text *what) {
    const struct variation *v =
        &variations[pick(tape, (int)(sizeof variations / sizeof *variations))];
    const char *tag[PLACES], *to;
    int n = tags_of(text, v->element, tag), values = 0;
    while (values < VALUES && v->value[values]) values++;
    to = v->value[pick(tape, values)];
    char queue[32];
    if (to == another_queue) pick_queue(text, tape, queue, sizeof queue), to = queue;
    if (!n || !*to) return NULL;
    const char *at = tag[pick(tape, n)];
    char *out = set_value(text, at, v->element, v->attribute, to);
    if (out) say_value(what, at, v->attribute, to);
    return out;
}

/* One to three of them. From the heap. */
static inline char *vary_machine(const char *text, struct tape *tape, struct text *what) {
    char *now = strdup(text);
    for (int n = 1 + pick(tape, 3); n > 0; n--) {
        char *next = vary_once(now, tape, what);
        if (!next) continue;
        free(now);
        now = next;
    }
    return now;
}

#endif
