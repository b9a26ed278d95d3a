/* Inside the backend `bits`: instruction words, table entries and register writes as the machine
 * file lays them out. */
#ifndef ISAMAP_BACKENDS_BITS_INT_H
#define ISAMAP_BACKENDS_BITS_INT_H

#include "backends/bits.h"

enum { BITS_WORD = 4096 }; /* a word is no longer */

/* A field at its place. */
struct bit_field {
    const struct field *field;
    int64_t at;
    int bits;
    const char *name; /* the file's, else made from its expression; no two are equal in one word */
    bool constant;    /* the expression has a value on this machine, whatever is issued: */
    uint64_t value;   /* cut to `bits` */
};

struct bit_word {
    int64_t bits, address; /* address -1: appended to the stream */
    struct bit_field *field;
    int nfields;
};

enum form_kind {
    FORM_INSTR,
    FORM_CONFIGURE,
    FORM_PUSH,
    FORM_POP,
    FORM_BEGIN,
    FORM_HEAD, /* a format alone */
    FORM_END,
    FORM_ENTRY
};

/* The words that one thing is written as. */
struct form {
    enum form_kind kind;
    const char
        *id; /* for names: the instruction's, the configure's, sync.push, instruction.loop … */
    int index, loop; /* of the instruction, configure or sync; loop: of an entry */
    struct bit_word *word;
    int nwords;
};

struct forms {
    struct form *at;
    int n, cap;
};

/* All of a machine, in the order of the file. */
struct forms forms_of(struct arena *, const struct machine *);
const struct form *form_find(const struct forms *, enum form_kind, int index); /* NULL: no bits */

#endif
