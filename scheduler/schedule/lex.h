/* The words of a schedule's text form (docs/schedule.md), and the parser's state. */
#ifndef ISAMAP_SCHEDULER_SCHEDULE_LEX_H
#define ISAMAP_SCHEDULER_SCHEDULE_LEX_H

#include "scheduler/schedule/schedule_int.h"

enum word_kind { WORD_END, WORD_NAME, WORD_NUMBER, WORD_MARK, WORD_BAD };

struct word_read {
    enum word_kind kind;
    size_t at, end;          /* in the source */
    const char *text;        /* NAME (without quotes), NUMBER, MARK: in the arena */
    bool quoted;
};

/* After the first failure the word is WORD_END, which ends every loop. */
struct reader {
    struct arena *arena;
    const struct source *source;
    struct diags *diags;
    struct word_read word;
    bool failed;
    int depth, terms;        /* of the expression being read */
    int loops;               /* around */
    struct schedule *schedule;
    const struct machine *machine;
    bool *bound;             /* variables of the loops around */
    int bound_cap, places_cap;
    size_t line_at;          /* lines are counted on from here, where `line` is */
    int line;
};

int read_line(struct reader *, size_t at);                        /* of the source, where the reader has come to */

bool read_fail(struct reader *, size_t at, const char *fmt, ...) __attribute__((format(printf, 3, 4))); /* false */
void read_advance(struct reader *);
bool read_at(const struct reader *, const char *spelling);        /* a name or mark */
bool read_accept(struct reader *, const char *spelling);
bool read_expect(struct reader *, const char *spelling);
const char *read_name(struct reader *, const char *what);         /* NULL after reporting */
bool read_integer(struct reader *, const char *what, int64_t low, int64_t high, int64_t *out);
bool read_double(struct reader *, const char *what, double *out);
const struct sx *read_sx(struct reader *);                        /* NULL after reporting */
bool read_block(struct reader *, struct node **, int *n);         /* { nodes } */
struct program *read_program_of(struct reader *, const char *word);   /* word { kernel }; NULL after reporting */
bool read_chain(struct reader *);                                 /* the program as written and the steps from it, where they are there */

/* parse_name.c: of the program, among the places, of a loop. -1 after reporting. */
int read_axis(struct reader *);
int read_buffer(struct reader *);
int read_open_size(struct reader *);
int find_place(const struct schedule *, const char *name);  /* -1: none; nothing is reported */
int bind_var(struct reader *, size_t at, const char *name); /* a new variable; -1 after reporting */

#endif
