/* What `isamap check` says of machine files that have a meaning, but hardly the one intended: a
 * small edit in a good file, and the finding with its line. */
#include "machines/machine.h"
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <glob.h>
#include <string.h>

#define ADVICE "tests/data/machines/advice.xml"

struct advice {
    const char *file, *old, *new; /* the first occurrence of old becomes new */
    const char *says;             /* NULL: nothing */
    const char *at;               /* this text's line is the message's */
    bool warning;
};

static const struct advice table[] = {
    {ADVICE, "", "", NULL, NULL, false},
    {ADVICE, "buffer=\"C\" memory=\"acc\"", "buffer=\"C\" memory=\"spare\"",
     "what 'mm' leaves in 'spare' has no way home, and no other result has: no chain of moves "
     "leads "
     "from there to 'dram', expected one",
     "<instruction id=\"mm\"", false},
    {ADVICE, "  <unit id=\"array\">",
     "  <memory id=\"one\" size=\"1K\"/> <memory id=\"two\" size=\"1K\"/>"
     "<for each=\"a b\" in=\"one two; two one\"><move id=\"$(a).$(b)\" queue=\"exec\" "
     "from=\"$(a)\" "
     "to=\"$(b)\"><semantics>kernel k() { in S: i8[8] out D: i8[8] axes e: 8 D[e] = S[e] "
     "}</semantics><operand buffer=\"S\"/><operand buffer=\"D\"/><emit as=\"bits\"><word "
     "format=\"head\"/></emit></move></for>"
     "<unit id=\"array\">",
     "nothing can ever use 'one.two': no chain of moves brings operand 'S' from 'dram' to 'one'",
     "<memory id=\"one\"", true},
    {ADVICE, "latency=\"12\" interval=\"M\"", "latency=\"12\" interval=\"M-1\"",
     "interval of 'mm' is 0 at PAD=32768, M=1, expected more than 0", "interval=\"M-1\"", true},
    {ADVICE, "latency=\"12\" interval=\"M\"", "latency=\"12\" interval=\"M + PAD/1024 - 16\"",
     "interval of 'mm' is -7 at PAD=8192", "PAD/1024", false},
    {ADVICE, "latency=\"12\" interval=\"M\"", "latency=\"12\" interval=\"65 - PAD/1024 - M/16\"",
     "interval of 'mm' is -63.0625 at PAD=131072", "65 - PAD", false},
    {ADVICE, "latency=\"12\" interval=\"M\"", "latency=\"M - 3\" interval=\"M\"",
     "latency of 'mm' is -2 at PAD=32768, M=1, expected 0 or more", "latency=\"M - 3\"", false},
    {ADVICE, "interval=\"M\" overhead=\"2\"", "interval=\"M\" overhead=\"PAD/1024 - 16\"",
     "overhead of 'mm' is -8 at PAD=8192", "PAD/1024 - 16", false},
    {ADVICE,
     "<emit as=\"bits\"><word format=\"head\"><field at=\"4\" bits=\"2\" value=\"3\"/><field "
     "at=\"8\" bits=\"2\" value=\"$(code)\"/></word></emit>",
     "", "'nop.load' has no emit, others have: no backend can use it, only the simulator",
     "id=\"nop.$(queue)\"", true},
    {ADVICE, "kernel mm(M=1..16) { in A: i8[M,T]   in B: i8[T,T]   inout C: i32[M,T]   axes i: M,",
     "kernel mm(M=1..4) { in A: i8[M*4,T]   in B: i8[T,T]   inout C: i32[M*4,T]   axes i: M*4,",
     "one more of 'M' makes axis 'i' of 'mm' 4 longer, so the schedule cannot choose how long it "
     "is: only the largest size is used",
     "axes i: M*4", true},
    {ADVICE, "in S: i8[Y,X,T]   out D: i8[Y,X,T]   axes y: Y, x: X,",
     "in S: i8[Y,X*2,T]   out D: i8[Y,X*2,T]   axes y: Y, x: X*2,",
     "one more of 'X' makes axis 'x' of 'ld' 2 longer, so the schedule cannot choose how long it "
     "is: nothing uses the move",
     "axes y: Y, x: X*2", true},
    {ADVICE, "<operand buffer=\"D\"/>",
     "<operand buffer=\"D\" layout=\"y,x,e -> y/3, x, y%3, e\"/>",
     "nothing uses move 'ld': expected, along each axis or each block of a fixed axis, one "
     "distance",
     "<move id=\"ld\"", true},
    {"tests/data/machines/schedule/warps.xml", "", "",
     "only one instance of unit 'group' can run: its instructions use memories outside of it",
     "<unit id=\"group\"", true},
    {"tests/data/machines/cluster.xml", "", "",
     "only one instance of unit 'node' can run: its instructions are on queues of units inside it",
     "<unit id=\"node\"", true},
};

static int line_of(const char *text, const char *marker) {
    const char *at = strstr(text, marker);
    if (!at) fail_msg("marker '%s' is not in the file", marker);
    int line = 1;
    for (const char *p = text; p < at; p++) line += *p == '\n';
    return line;
}

static void try_advice(const struct advice *c) {
    struct arena arena;
    struct diags d;
    struct text edited = {0};
    size_t length;
    arena_init(&arena);
    diags_init(&d);
    const char *text = file_read(&arena, c->file, 1 << 20, &length, &d);
    assert_non_null(text);
    const char *at = strstr(text, c->old);
    if (!at) fail_msg("%s has no '%s'", c->file, c->old);
    text_append(&edited, text, (size_t)(at - text));
    text_append(&edited, c->new, strlen(c->new));
    text_append(&edited, at + strlen(c->old), strlen(at + strlen(c->old)));
    struct machine *m = machine_parse(c->file, edited.at, edited.n, NULL, &d);
    if (!m) diags_print(&d, stderr);
    assert_non_null(m);
    bool ok = machine_advise(m, &d), found = false;
    for (int i = 0; i < d.n && c->says; i++)
        found |= d.at[i].warning == c->warning && strstr(d.at[i].text, c->says) &&
                 d.at[i].line == line_of(edited.at, c->at);
    if (c->says ? !found : d.n > 0) {
        diags_print(&d, stderr);
        fail_msg("%s: '%s' -> '%s': expected '%s'", c->file, c->old, c->new,
                 c->says ? c->says : "nothing");
    }
    assert_true(ok == (d.errors == 0));
    machine_free(m);
    text_free(&edited);
    diags_free(&d);
    arena_free(&arena);
}

static void findings(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) try_advice(&table[i]);
}

static void shipped_files_have_none(void **state) {
    (void)state;
    glob_t files;
    assert_int_equal(glob("machines/*.xml", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct diags d;
        diags_init(&d);
        struct machine *m = machine_load(files.gl_pathv[i], NULL, &d);
        if (m && (!machine_advise(m, &d) || d.n)) {
            diags_print(&d, stderr);
            fail_msg("%s has findings", files.gl_pathv[i]);
        }
        machine_free(m);
        diags_free(&d);
    }
    globfree(&files);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(findings),
                                       cmocka_unit_test(shipped_files_have_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
