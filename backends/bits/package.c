/* The SystemVerilog package of a machine: what encoder and hardware must agree on stands once, in
 * the machine file. */
#include "backends/bits/bits_int.h"

#include <ctype.h>
#include <string.h>

/* IEEE 1800-2017, annex B: those that an expression's letters may spell */
static const char keywords[] =
    " accept_on alias always always_comb always_ff always_latch and assert assign assume automatic "
    "before begin bind bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle "
    "checker class clocking cmos config const constraint context continue cover covergroup "
    "coverpoint cross deassign default defparam design disable dist do edge else end endcase "
    "endchecker endclass endclocking endconfig endfunction endgenerate endgroup endinterface "
    "endmodule endpackage endprimitive endprogram endproperty endspecify endsequence endtable "
    "endtask enum event eventually expect export extends extern final first_match for force "
    "foreach forever fork forkjoin function generate genvar global highz0 highz1 if iff ifnone "
    "ignore_bins illegal_bins implements implies import incdir include initial inout input inside "
    "instance int integer interconnect interface intersect join join_any join_none large let "
    "liblist library local localparam logic longint macromodule matches medium modport module nand "
    "negedge nettype new nexttime nmos nor noshowcancelled not notif0 notif1 null or output "
    "package packed parameter pmos posedge primitive priority program property protected pull0 "
    "pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase "
    "randsequence rcmos real realtime ref reg reject_on release repeat restrict return rnmos rpmos "
    "rtran rtranif0 rtranif1 s_always s_eventually s_nexttime s_until s_until_with scalared "
    "sequence shortint shortreal showcancelled signed small soft solve specify specparam static "
    "string strong strong0 strong1 struct super supply0 supply1 sync_accept_on sync_reject_on "
    "table tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 "
    "tri1 triand trior trireg type typedef union unique unique0 unsigned until until_with untyped "
    "use uwire var vectored virtual void wait wait_order wand weak weak0 weak1 while wildcard wire "
    "with within wor xnor xor ";

static bool is_keyword(const char *name) {
    size_t n = strlen(name);
    for (const char *p = keywords; (p = strstr(p, name)); p += n)
        if (p[-1] == ' ' && p[n] == ' ') return true;
    return false;
}

/* ld.inp becomes ld_inp, or LD_INP. */
static const char *identifier(struct arena *a, const char *id, bool upper) {
    char *name = arena_strdup(a, id);
    for (char *p = name; *p; p++) {
        if (!isalnum((unsigned char)*p)) *p = '_';
        if (upper) *p = (char)toupper((unsigned char)*p);
    }
    return is_keyword(name) ? arena_printf(a, "%s_", name) : name;
}

static void whole(struct text *t, const char *name, const char *suffix, int64_t v) {
    if (v == (int32_t)v)
        text_printf(t, "  localparam int %s%s = %lld;\n", name, suffix, (long long)v);
    else
        text_printf(t, "  localparam longint %s%s = 64'd%lld;\n", name, suffix, (long long)v);
}

static void cost(struct text *t, const char *name, const char *suffix, const struct mexpr *e) {
    double v;
    if (mexpr_constant(e, &v) && v == (double)(int64_t)v) whole(t, name, suffix, (int64_t)v);
}

/* ---- words ---- */

static void bits_literal(struct text *t, const bool *bit, int64_t bits) {
    text_printf(t, "%lld'h", (long long)bits);
    for (int64_t k = (bits + 3) / 4 - 1; k >= 0; k--) {
        int digit = 0;
        for (int b = 3; b >= 0; b--) digit = digit << 1 | (4 * k + b < bits && bit[4 * k + b]);
        text_printf(t, "%x", digit);
    }
}

/* What tells this word from others: its constant fields, and the bits that nobody names. */
static void known_bits(const struct bit_word *w, bool *mask, bool *match) {
    for (int64_t k = 0; k < w->bits; k++) mask[k] = true, match[k] = false;
    for (int i = 0; i < w->nfields; i++)
        for (int k = 0; k < w->field[i].bits; k++) {
            mask[w->field[i].at + k] = w->field[i].constant;
            match[w->field[i].at + k] = w->field[i].constant && (w->field[i].value >> k & 1);
        }
}

static const struct bit_field *field_ending(const struct bit_word *w, int64_t end) {
    for (int i = 0; i < w->nfields; i++)
        if (w->field[i].at + w->field[i].bits == end) return &w->field[i];
    return NULL;
}

static int64_t gap_below(const struct bit_word *w, int64_t end) {
    int64_t top = 0;
    for (int i = 0; i < w->nfields; i++) {
        int64_t e = w->field[i].at + w->field[i].bits;
        if (e <= end && e > top) top = e;
    }
    return top;
}

static void packed_struct(struct arena *a, struct text *t, const struct bit_word *w,
                          const char *name) {
    text_printf(t, "  typedef struct packed {\n");
    for (int64_t end = w->bits; end > 0;) {
        const struct bit_field *f = field_ending(w, end);
        int64_t from = f ? f->at : gap_below(w, end);
        if (f)
            text_printf(t, "    logic %s[%d:0] %s; // %s\n", f->field->is_signed ? "signed " : "",
                        f->bits - 1, identifier(a, f->name, false), f->field->value->text);
        else
            text_printf(t, "    logic [%lld:0] unused_%lld;\n", (long long)(end - from - 1),
                        (long long)from);
        end = from;
    }
    text_printf(t, "  } %s_t;\n", name);
}

static void word_text(struct arena *a, struct text *t, const struct bit_word *w, const char *id) {
    const char *upper = identifier(a, id, true);
    bool mask[BITS_WORD], match[BITS_WORD];
    whole(t, upper, "_BITS", w->bits);
    if (w->address >= 0) whole(t, upper, "_ADDRESS", w->address);
    for (int i = 0; i < w->nfields; i++) {
        const struct bit_field *f = &w->field[i];
        const char *field = arena_printf(a, "%s__%s", upper, identifier(a, f->name, true));
        text_printf(t, "  localparam int %s_AT = %lld, %s_BITS = %d;\n", field, (long long)f->at,
                    field, f->bits);
        if (f->constant)
            text_printf(t, "  localparam logic [%d:0] %s = %d'd%llu;\n", f->bits - 1, field,
                        f->bits, (unsigned long long)f->value);
    }
    known_bits(w, mask, match);
    text_printf(t, "  localparam logic [%lld:0] %s_MASK = ", (long long)(w->bits - 1), upper);
    bits_literal(t, mask, w->bits);
    text_printf(t, ", %s_MATCH = ", upper);
    bits_literal(t, match, w->bits);
    text_printf(t, ";\n");
    packed_struct(a, t, w, identifier(a, id, false));
}

static void form_text(struct arena *a, struct text *t, const struct machine *m,
                      const struct form *f) {
    text_printf(t, "\n  // %s\n", f->id);
    if (f->kind == FORM_INSTR) {
        const struct instr *x = &m->instr[f->index];
        const char *upper = identifier(a, x->id, true);
        cost(t, upper, "_OVERHEAD", x->overhead);
        cost(t, upper, "_INTERVAL", x->interval);
        cost(t, upper, "_LATENCY", x->latency);
        for (int l = 0; l < x->nloops; l++)
            whole(t, arena_printf(a, "%s_%s", upper, identifier(a, x->loop[l].id, true)), "_MAX",
                  x->loop[l].max);
    }
    for (int k = 0; k < f->nwords; k++)
        word_text(a, t, &f->word[k], f->nwords == 1 ? f->id : arena_printf(a, "%s.%d", f->id, k));
}

/* ---- the machine ---- */

static void memories_text(struct arena *a, struct text *t, const struct machine *m) {
    for (int i = 0; i < m->nmemories; i++) {
        const struct memory *x = &m->memory[i];
        const char *name = arena_printf(a, "MEMORY_%s", identifier(a, x->id, true));
        if (x->size >= 0) {
            whole(t, name, "_BYTES", x->size);
            whole(t, name, "_WORDS", x->size / x->word);
        }
        whole(t, name, "_WORD", x->word);
    }
}

static void queues_text(struct arena *a, struct text *t, const struct machine *m) {
    for (int i = 0; i < m->nbuses; i++) {
        const char *name = arena_printf(a, "BUS_%s", identifier(a, m->bus[i].id, true));
        if (m->bus[i].rate == (double)(int64_t)m->bus[i].rate)
            whole(t, name, "_RATE", (int64_t)m->bus[i].rate);
        if (m->bus[i].latency == (double)(int64_t)m->bus[i].latency)
            whole(t, name, "_LATENCY", (int64_t)m->bus[i].latency);
    }
    for (int i = 0; i < m->nqueues; i++)
        if (m->queue[i].depth >= 0)
            whole(t, arena_printf(a, "QUEUE_%s", identifier(a, m->queue[i].id, true)), "_DEPTH",
                  m->queue[i].depth);
    for (int i = 0; i < m->nsyncs; i++)
        if (m->sync[i].depth >= 0)
            whole(t, arena_printf(a, "SYNC_%s", identifier(a, m->sync[i].id, true)), "_DEPTH",
                  m->sync[i].depth);
}

void bits_package(const struct machine *m, struct text *t) {
    struct arena a;
    arena_init(&a);
    const char *name = strrchr(m->file, '/');
    text_printf(t,
                "// Machine '%s', made from %s by `isamap show`. Constants of a field: its lowest "
                "bit _AT, its width _BITS,\n// its value where that is fixed. A word w is an "
                "instruction when (w & _MASK) == _MATCH.\npackage %s_pkg;\n",
                m->name, name ? name + 1 : m->file, identifier(&a, m->name, false));
    for (int i = 0; i < m->nparams; i++)
        whole(t, identifier(&a, m->param[i].name, true), "", m->param[i].value);
    text_printf(t, "\n");
    memories_text(&a, t, m);
    queues_text(&a, t, m);
    struct forms all = forms_of(&a, m);
    for (int i = 0; i < all.n; i++) form_text(&a, t, m, &all.at[i]);
    text_printf(t, "endpackage\n");
    arena_free(&a);
}
