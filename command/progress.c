#include "command/progress.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_US = 200000, WIDEST = 160, NARROWEST = 20 };

static const char erase[] = "\r\033[K";

/* A signal handler has no other way to know: the one call that is shown. */
static struct {
    const isamap *volatile im;
    struct timespec start;
    volatile sig_atomic_t shown;
    int width;
} call;

/* Of the number's digits, written from `at` on. */
static size_t digits(char *at, long n) {
    size_t k = 1;
    for (long rest = n; rest > 9; rest /= 10) k++;
    for (size_t i = k; i-- > 0; n /= 10) at[i] = (char)('0' + n % 10);
    return k;
}

/* "\r planning, 3 s": only what may be called in a signal handler. */
static void show(int signal_number) {
    char line[WIDEST + 16];
    int kept = errno;
    struct timespec now;
    size_t n = sizeof erase - 1;
    (void)signal_number;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long seconds = (long)(now.tv_sec - call.start.tv_sec) - (now.tv_nsec < call.start.tv_nsec);
    const char *what = call.im && seconds >= 1 ? isamap_doing(call.im) : "";
    if (*what) {
        memcpy(line, erase, n);
        for (int i = 0; what[i] && i < call.width - 10; i++)
            line[n++] = (unsigned char)what[i] < ' ' ? '?' : what[i];
        line[n++] = ',';
        line[n++] = ' ';
        n += digits(line + n, seconds);
        line[n++] = ' ';
        line[n++] = 's';
        call.shown = write(STDERR_FILENO, line, n) > 0;
    }
    errno = kept;
}

static void set_timer(suseconds_t period) {
    struct itimerval every = {.it_interval.tv_usec = period, .it_value.tv_usec = period};
    setitimer(ITIMER_REAL, &every, NULL);
}

void progress_begin(const isamap *im) {
    struct winsize size;
    struct sigaction act = {.sa_handler = show, .sa_flags = SA_RESTART};
    if (!isatty(STDERR_FILENO)) return;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= NARROWEST;
    call.width = !known ? 80 : size.ws_col > WIDEST ? WIDEST : size.ws_col;
    call.shown = 0;
    clock_gettime(CLOCK_MONOTONIC, &call.start);
    call.im = im;
    sigemptyset(&act.sa_mask);
    sigaction(SIGALRM, &act, NULL);
    set_timer(PERIOD_US);
}

void progress_end(void) {
    if (!call.im) return;
    set_timer(0);
    call.im = NULL;
    if (call.shown && write(STDERR_FILENO, erase, sizeof erase - 1) < 0) call.shown = 0;
}
