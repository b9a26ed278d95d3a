/* What the C compiler may read of a machine file that nobody vouches for. */
#include "backends/backends_int.h"

#include <ctype.h>
#include <string.h>

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* Lines that end in a backslash are one. */
static char *spliced(struct arena *a, const char *text) {
    char *copy = arena_strdup(a, text), *to = copy;
    for (const char *at = copy; *at;) {
        size_t blanks = *at == '\\' ? strspn(at + 1, " \t\r\f\v") : 0;
        if (*at == '\\' && at[1 + blanks] == '\n')
            at += blanks + 2;
        else
            *to++ = *at++;
    }
    *to = 0;
    return copy;
}

/* " <NAME>" stands here. */
static bool names_header(const char *at) {
    at += strspn(at, " \t");
    return *at == '<' && header_is_name(at + 1, strcspn(at + 1, ">\n")) &&
           at[1 + strcspn(at + 1, ">\n")] == '>';
}

static bool is_word(const char *word, size_t n, const char *other) {
    return strlen(other) == n && memcmp(word, other, n) == 0;
}

const char *c_guard(struct arena *a, const char *text) {
    static const char *const refused[] = {"include_next", "import", "embed", "pragma", "_Pragma"};
    const char *at = spliced(a, text);
    while (*at) {
        size_t n = 0;
        if (!strncmp(at, "##", 2) || !strncmp(at, "%:%:", 4)) return "it pastes words with '##'";
        while (in_word(at[n])) n++;
        if (is_word(at, n, "include") && !names_header(at + n))
            return "an include in it names no <HEADER> of the include path";
        if (n > 6 && !strncmp(at, "__has_", 6)) return "it asks what headers there are";
        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
            if (is_word(at, n, refused[i])) return arena_printf(a, "it says '%s'", refused[i]);
        at += n ? n : 1;
    }
    return NULL;
}
