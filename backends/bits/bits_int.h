/* Inside the backend `bits`: instruction words, table entries and register writes as the machine
 * file lays them out. */
#ifndef ISAMAP_BACKENDS_BITS_BITS_INT_H
#define ISAMAP_BACKENDS_BITS_BITS_INT_H

#include "backends/backends_int.h"
#include "backends/bits/bits.h"

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

/* ---- values of fields (value.c) ---- */

/* What the fields of one form are evaluated with. What does not apply is NULL or 0. */
struct issued {
    const struct machine *machine;
    const struct site *site;         /* an instruction: its sizes, strides, flags, addresses */
    const struct settings *settings; /* a configure */
    const int *pop, *push;           /* [machine.nsyncs] how often it carries each */
    const int64_t *extent, *first;   /* [instr.nloops] */
    const int64_t *step;             /* [instr.nloops][instr.noperands] bytes */
    const int *slot;                 /* [machine.nstates] which slot it uses; -1: none */
    int64_t channel, phase, pending, bytes; /* of a sync's own words */
    int64_t instructions, base[2]; /* begin and end; where the home memory and the program begin */
    bool is_read; /* from words: channel … instructions have no value yet */
};

struct mexpr_env issued_env(const struct issued *);
/* Writes a field into a word. False after reporting: no value, a fraction, too large. `owner` is
 * for the message. */
bool field_pack(const struct bit_field *, const struct issued *, const char *owner, uint8_t *word,
                struct diags *);
uint64_t field_unpack(const struct bit_field *, const uint8_t *word);
int64_t word_bytes(const struct bit_word *);
/* Does one of the fields mention push(s) or pop(s)? */
bool form_carries(const struct form *, const char *function, const char *sync);

/* ---- decoding (decode.c) ---- */

/* One instruction as its words say it. Its values are `known` where a field gives them. */
struct decoded {
    const struct form *form;
    struct site *site;   /* of an instruction; else NULL */
    const uint8_t *word; /* its first */
    int64_t bytes;
    int *pop, *push, *slot;              /* [nsyncs], [nsyncs], [nstates]; slot -1: not said */
    struct known *extent, *first, *step; /* [nloops], [nloops], [nloops][noperands] */
};

/* Reads the words that begin here. False: no instruction is written like that. */
bool decode_one(struct arena *, const struct machine *, const struct forms *, const uint8_t *,
                int64_t left, struct decoded *);
/* As `ld(N = 4, …)`. */
void decoded_text(const struct machine *, const struct decoded *, struct text *);
/* The entry with this number of the table in `bytes`: the operands' addresses; site as before,
 * others stay. False: there is none. */
bool decode_entry(struct arena *, const struct machine *, const struct forms *, int instr,
                  const uint8_t *entry, struct site *);

#endif
