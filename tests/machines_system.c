/* Parameters that the system sets: sizes and ways of this computer's caches. */
#include "machines/machine.h"
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cache {
    const char *level, *type, *size, *ways;
} caches[] = {{"1", "Instruction", "32K", "8"},
              {"1", "Data", "48K", "12"},
              {"2", "Unified", "1024K", "16"},
              {"3", "Unified", "many", "0"}};
enum { CACHES = sizeof caches / sizeof *caches };

static void value(const char *folder, int index, const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/index%d", folder, index);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/index%d/%s", folder, index, name);
    FILE *f = text ? fopen(path, "w") : NULL;
    if (!text) {
        unlink(path);
        *strrchr(path, '/') = 0;
        rmdir(path); /* when it is empty */
        return;
    }
    assert_non_null(f);
    fprintf(f, "%s\n", text);
    fclose(f);
}

static void folder_of_caches(void **state) {
    (void)state;
    char folder[] = "/tmp/isamap-caches-XXXXXX";
    assert_non_null(mkdtemp(folder));
    for (int made = 1; made >= 0; made--) {
        for (int i = 0; i < CACHES; i++) {
            value(folder, i, "level", made ? caches[i].level : NULL);
            value(folder, i, "type", made ? caches[i].type : NULL);
            value(folder, i, "size", made ? caches[i].size : NULL);
            value(folder, i, "ways_of_associativity", made ? caches[i].ways : NULL);
        }
        assert_int_equal(system_value(folder, "cache 1 size"), made ? 48 << 10 : 0);
        assert_int_equal(system_value(folder, "cache 1 ways"), made ? 12 : 0);
        assert_int_equal(system_value(folder, "cache 2 size"), made ? 1 << 20 : 0);
        assert_int_equal(system_value(folder, "cache 1 line"), 0); /* no such file */
        assert_int_equal(system_value(folder, "cache 3 size"), 0); /* no number */
        assert_int_equal(system_value(folder, "cache 3 ways"), 0); /* not known */
        assert_int_equal(system_value(folder, "cache 4 size"), 0); /* no such cache */
    }
    assert_int_equal(rmdir(folder), 0);
}

static const char text[] =
    "<machine name='own' xmlns='urn:isamap:machine:1'><param name='S' value='12345' host='%s'/>"
    "<memory id='m'/><queue id='q'/><fallback as='c' queue='q' memory='m'/></machine>";

static void words(void **state) {
    (void)state;
    static const struct {
        const char *word;
        bool right;
    } all[] = {{"cache 2 size", true},   {"cache 1 ways", true},   {"", false},
               {"cache", false},         {"cache 2", false},       {"cache 9 size", false},
               {"cache 2 sizes", false}, {"cache 2 size x", false}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char xml[1024];
        struct diags d;
        diags_init(&d);
        int n = snprintf(xml, sizeof xml, text, all[i].word);
        struct machine *m = machine_parse("own.xml", xml, (size_t)n, NULL, &d);
        assert_int_equal(m != NULL, all[i].right);
        if (m) {
            assert_int_equal(m->param[0].value, 12345); /* only calibrate asks the system */
            assert_string_equal(m->param[0].host, all[i].word);
        } else {
            assert_non_null(strstr(d.at[0].text, "of the host, expected cache LEVEL size"));
            assert_int_equal(d.at[0].line, 1);
        }
        machine_free(m);
        diags_free(&d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folder_of_caches),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
