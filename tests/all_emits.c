/* Every emit of every machine file compiles, and does what its semantics say where this processor
 * can execute it. */
#include "backends/backend.h"
#include "backends/conform.h"
#include "tests/sample.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* A file of the tests that is wrong on purpose does not load, and is left out; the shipped ones
 * must. */
static void check_file(const char *path, bool shipped, int *machines, int *executed) {
    struct diags diags;
    struct text report = {0};
    struct conformity counts;
    diags_init(&diags);
    struct machine *m = machine_load(path, NULL, &diags);
    if (!m && shipped) diags_print(&diags, stderr);
    if (shipped) assert_non_null(m);
    if (m) {
        bool good = emit_conform(m, true, &counts, &diags, &report);
        if (!good) diags_print(&diags, stderr);
        if (getenv("VERBOSE")) printf("%s:\n%s", path, report.at ? report.at : "");
        assert_true(good);
        *executed += counts.executed;
        ++*machines;
    }
    machine_free(m);
    text_free(&report);
    diags_free(&diags);
}

static void check_folder(const char *folder, bool shipped, int *machines, int *executed) {
    struct dirent **entry;
    int files = 0, n = scandir(folder, &entry, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char path[1024];
        const char *name = entry[i]->d_name, *dot = strrchr(name, '.');
        snprintf(path, sizeof path, "%s/%s", folder, name);
        if (dot && !strcmp(dot, ".xml") && (!shipped || sampled((size_t)files++)))
            check_file(path, shipped, machines, executed);
        free(entry[i]);
    }
    if (n >= 0) free(entry);
}

static void test_shipped(void **state) {
    int machines = 0, executed = 0;
    (void)state;
    check_folder(SOURCE_DIR "/machines", true, &machines, &executed);
    assert_true(machines >= (sampled(1) ? 4 : 2)); /* few of them with sanitizers */
}

static void test_own(void **state) {
    int machines = 0, executed = 0;
    (void)state;
    check_folder(SOURCE_DIR "/tests/data/machines", false, &machines, &executed);
    check_folder(SOURCE_DIR "/tests/data/machines/backends", false, &machines, &executed);
    assert_true(machines >= 2);
    assert_true(executed >=
                9); /* the machine with vectors of four needs no feature: each text runs */
}

static struct machine *parse(const char *xml, struct diags *diags) {
    struct machine *m = machine_parse("wrong.xml", xml, strlen(xml), NULL, diags);
    if (!m) diags_print(diags, stderr);
    assert_non_null(m);
    return m;
}

#define HEAD                                                                                       \
    "<machine name=\"wrong\" clock=\"1e9\" xmlns=\"urn:isamap:machine:1\"><memory id=\"dram\" "    \
    "align=\"4\"/>\n"                                                                              \
    "<unit id=\"core\"><memory id=\"reg\" size=\"64\" word=\"16\" pass=\"value\"/><queue "         \
    "id=\"q\" order=\"data\"/>\n"                                                                  \
    "<fallback as=\"c\" queue=\"q\" memory=\"dram\"/>\n"                                           \
    "<move id=\"ld\" from=\"dram\" to=\"reg\" queue=\"q\"><semantics>kernel l(J=1..4) { in S: "    \
    "f32[J] out D: f32[J] "                                                                        \
    "axes j: J D[j] = S[j] }</semantics><operand buffer=\"S\"/><operand buffer=\"D\"/></move>\n"   \
    "<move id=\"st\" from=\"reg\" to=\"dram\" queue=\"q\"><semantics>kernel s(J=1..4) { in S: "    \
    "f32[J] out D: f32[J] "                                                                        \
    "axes j: J D[j] = S[j] }</semantics><operand buffer=\"S\"/><operand buffer=\"D\"/>\n"
#define TAIL "</move></unit></machine>"

static void expect_error(const char *emit, const char *message) {
    struct diags diags;
    struct text xml = {0}, report = {0};
    struct conformity counts;
    bool found = false;
    diags_init(&diags);
    text_printf(&xml, "%s%s%s", HEAD, emit, TAIL);
    struct machine *m = parse(xml.at, &diags);
    bool good = emit_conform(m, true, &counts, &diags, &report);
    for (int i = 0; i < diags.n; i++) found = found || strstr(diags.at[i].text, message);
    if (good || !found) diags_print(&diags, stderr);
    assert_false(good);
    assert_true(found);
    machine_free(m);
    text_free(&xml);
    text_free(&report);
    diags_free(&diags);
}

static void test_wrong_value(void **state) {
    (void)state;
    expect_error("<emit as=\"c\"> for (long j = 0; j + 1 &lt; J; j++) D[j] = S[j];</emit>",
                 "its semantics give");
}

static void test_writes_outside(void **state) {
    (void)state;
    expect_error("<emit as=\"c\"> for (long j = 0; j &lt; 4; j++) D[j] = S[j];</emit>",
                 "writes outside");
}

static void test_does_not_compile(void **state) {
    (void)state;
    expect_error("<emit as=\"c\"> for (long j = 0; j &lt; J; j++) D[j] = T[j];</emit>",
                 "wrong.xml:6:38");
#if ISAMAP_WITH_LLVM
    expect_error("<emit as=\"llvm\"> store float 1, ptr %D\n ret void</emit>",
                 "the llvm emit does not compile");
#endif
}

static void test_crashes(void **state) {
    (void)state;
    expect_error("<emit as=\"c\"> __builtin_trap();</emit>", "crashed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped),          cmocka_unit_test(test_own),
        cmocka_unit_test(test_wrong_value),      cmocka_unit_test(test_writes_outside),
        cmocka_unit_test(test_does_not_compile), cmocka_unit_test(test_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
