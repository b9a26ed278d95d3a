/* Machine files with small damages: what is refused, where and with which words, and what is warned
 * of where it is accepted. Kept in tests/data/golden/machines_damaged.txt. */
#include "tests/damage.h"
#include "machines/machine.h"

static void machine_try(struct damaged *d, void *user, const char *text) {
    struct diags said;
    diags_init(&said);
    struct machine *m = machine_parse(user, text, strlen(text), NULL, &said);
    damage_diags(d, &said);
    if (m) {
        struct text out = {0};
        machine_describe(m, &out);
        damage_said(d, "accepted", out.at);
        text_free(&out);
    }
    machine_free(m);
    diags_free(&said);
}

/* Without each attribute, and without each line. */
static void damage_structure(struct damaged *d, const char *xml, char *path) {
    for (const char *at = xml; (at = strstr(at, "=\"")); at++) {
        const char *from = at, *end = strchr(at + 2, '"');
        while (from > xml && !strchr(" \n", from[-1])) from--;
        d->tried++;
        machine_try(d, path, arena_printf(&d->arena, "%.*s%s", (int)(from - xml), xml, end + 1));
    }
    for (const char *at = xml; *at;) {
        size_t n = strcspn(at, "\n") + 1;
        d->tried++;
        machine_try(d, path, arena_printf(&d->arena, "%.*s%s", (int)(at - xml), xml, at + n));
        at += n;
    }
}

/* The file, and of how many damages to values one is tried. */
static const struct {
    const char *file;
    int every;
} machines[] = {
    {"edge16.xml", 17},  {"gemmini.xml", 17},       {"sm90.xml", 19},          {"vdla.xml", 19},
    {"fused.xml", 17},   {"ports/condor.xml", 23},  {"schedule/warps.xml", 5}, {"sim/async.xml", 5},
    {"sim/pipe.xml", 5}, {"sim/configured.xml", 5}, {"mapper/masked.xml", 5},  {"cluster.xml", 3},
};

static void damaged_machines(void **state) {
    struct damaged *damaged = damage_open();
    struct text seen = {0};
    (void)state;
    for (int k = 0; k < (int)(sizeof machines / sizeof *machines); k++) {
        struct arena arena;
        struct diags d;
        size_t n;
        arena_init(&arena);
        diags_init(&d);
        char *path = arena_printf(&arena, "tests/data/machines/%s", machines[k].file);
        const char *xml = file_read(&arena, path, 1 << 20, &n, &d);
        assert_non_null(xml);
        damage_all(damaged, xml, "\"()+-*/%,", machines[k].every, machine_try, path);
        damage_structure(damaged, xml, path);
        diags_free(&d);
        arena_free(&arena);
    }
    damage_close(damaged, "tests/data/machines", &seen);
    golden_check("machines_damaged", &seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_machines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
