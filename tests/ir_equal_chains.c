/* The checker of program changes on long chains of statements: its work is in proportion to the
 * links. */
#include "ir/chain.h"
#include "equal_help.h"

/* A chain in which each value is read several times: what the last one is made of is 3^links values
 * of the first. One side has temporaries of its own, so nothing between is shared. */
static struct verdict long_chain(int links, const char *first, const char *link) {
    struct text t[2] = {{0}, {0}}, declared = {0};
    text_printf(&declared, "in A: f32[16,16]  in B: f32[16]  out C: f32[16]  axes i: 16\n");
    for (int k = 0; k <= links; k++)
        text_printf(&declared, "temp T%d: f32[16]  temp U%d: f32[16]  temp M%d: f32[1]  ", k, k, k);
    for (int side = 0; side < 2; side++) {
        const char name = side ? 'U' : 'T';
        text_printf(&t[side], "%c0[i] = %s; ", name, side ? first : "A[i,0] * B[i]");
        for (int k = 0; k < links; k++)
            for (const char *c = link; *c; c++) {
                char one[2] = {*c, 0};
                if (*c == '<' || *c == '>')
                    text_printf(&t[side], "%c%d", name, *c == '<' ? k : k + 1);
                else if (*c == '#')
                    text_printf(&t[side], "M%d[0]", k);
                else
                    text_printf(&t[side], "%s", one);
            }
        text_printf(&t[side], "C[i] = %c%d[i]", name, links);
    }
    struct equal_case c = {declared.at, t[0].at, t[1].at, LAWS_REORDER, false};
    struct program *p = program_of(&c, c.before), *q = program_of(&c, c.after);
    struct items all = {0, p->nitems};
    struct verdict v = items_equal_by(p, all, q, all, LAWS_REORDER, 0);
    program_free(p);
    program_free(q);
    for (int side = 0; side < 2; side++) text_free(&t[side]);
    text_free(&declared);
    return v;
}

#define CHOICE ">[i] = select(<[i] != B[i], max(<[i], 0.5) / B[i], sin(<[i])); "
#define SCALED "# = 0; # max= <[i]; >[i] = round(<[i] / #) - sin(<[i]); "

/* All that is read more than once is followed once, and compared once: operations in proportion to
 * the links. */
static void test_long_chains(void **state) {
    (void)state;
    static const struct {
        int links;
        const char *first;
        bool proved;
    } chains[] = {{190, "A[i,0] * B[i]", true},
                  {190, "A[i,1] * B[i]", false},
                  {60, "B[i] * A[i,0]", true},
                  {60, "B[i] * A[i,1]", false}};
    for (size_t k = 0; k < sizeof chains / sizeof *chains; k++) {
        struct verdict v = long_chain(chains[k].links, chains[k].first, CHOICE);
        assert_int_equal(v.evidence == EVIDENCE_PROVED, chains[k].proved);
        assert_true(v.nodes <= 60 * chains[k].links);
    }
}

/* Where each reduction has points of its own nothing comes again: too many steps. */
static void test_chains_end(void **state) {
    (void)state;
    struct verdict v = long_chain(100, "A[i,1] * B[i]", SCALED);
    assert_int_equal(v.evidence, EVIDENCE_UNPROVED);
    assert_true(v.nodes < 200000);
}

/* Every third element in rows and columns: of which one it was made is found by dividing, so the
 * relations have no more dimensions for a longer chain. */
static enum evidence strided_chain(int links, int more) {
    struct text t[2] = {{0}, {0}}, declared = {0};
    text_printf(&declared, "inout C: f32[50,50]  axes i: 16, j: 16\n");
    for (int k = 0; k <= links; k++) text_printf(&declared, "temp T%d: f32[16,16]  ", k);
    text_printf(&t[1], "T0[i,j] = C[3*i + 2,3*j]; ");
    for (int k = 0; k < links; k++) {
        text_printf(&t[0], "C[3*i + 2,3*j] = sin(C[3*i + 2,3*j]); ");
        text_printf(&t[1], "T%d[i,j] = sin(T%d[i,j]); ", k + 1, k);
    }
    text_printf(&t[1], more ? "C[3*i + 2,3*j] = sin(T%d[i,j])" : "C[3*i + 2,3*j] = T%d[i,j]",
                links);
    struct equal_case c = {declared.at, t[0].at, t[1].at, LAWS_EXACT, true};
    struct program *p = program_of(&c, c.before), *q = program_of(&c, c.after);
    struct items all = {0, p->nitems}, also = {0, q->nitems};
    enum evidence found = items_equal_by(p, all, q, also, LAWS_EXACT, 0).evidence;
    program_free(p);
    program_free(q);
    for (int side = 0; side < 2; side++) text_free(&t[side]);
    text_free(&declared);
    return found;
}

static void test_strided_chains(void **state) {
    (void)state;
    assert_int_equal(strided_chain(40, 0), EVIDENCE_PROVED);
    assert_int_not_equal(strided_chain(40, 1), EVIDENCE_PROVED);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_long_chains),
                                       cmocka_unit_test(test_chains_end),
                                       cmocka_unit_test(test_strided_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
