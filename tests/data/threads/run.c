/* Runs compiled code under the thread sanitizer. OpenMP's own runtime is not built with it and
 * would give false alarms, so here are the four functions of it that compiled code calls, on
 * threads that the sanitizer sees: created before, joined after. With an argument every thread
 * takes the same share: a race that must be found. */
#include "gmm.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };
static int broken;
static _Thread_local int id, team = 1;

struct start {
    void (*body)(void *);
    void *data;
    int id, team;
};

static void *begin(void *arg) {
    const struct start *s = arg;
    id = broken ? s->team - 1 : s->id; /* the last share is never empty */
    team = s->team;
    s->body(s->data);
    return NULL;
}

int omp_get_thread_num(void);
int omp_get_num_threads(void);
int omp_get_max_threads(void);
void GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags);

int omp_get_thread_num(void) {
    return id;
}

int omp_get_num_threads(void) {
    return team;
}

int omp_get_max_threads(void) {
    return MOST;
}

void GOMP_parallel(void (*body)(void *), void *data, unsigned threads, unsigned flags) {
    pthread_t thread[MOST];
    struct start start[MOST];
    int n = threads < MOST ? (int)threads : MOST;
    (void)flags;
    for (int i = 0; i < n; i++) {
        start[i] = (struct start){body, data, i, n};
        if (pthread_create(&thread[i], NULL, begin, &start[i])) abort();
    }
    for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
}

static void *block(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (!p) abort();
    memset(p, 0, bytes);
    return p;
}

static float *array(int n, unsigned seed) {
    float *p = block((size_t)n * sizeof *p);
    for (int i = 0; i < n; i++) p[i] = (float)((i * 37 + (int)seed) % 11 - 5);
    return p;
}

int main(int argc, char **argv) {
    (void)argv;
    broken = argc > 1;
    float *a = array(M * K, 1), *b = array(K * N, 2), *c = array(M * N, 3);
    struct gmm_args args = {.A = a, .B = b, .C = c, .threads = 8};
    void *workspace = block(gmm_workspace_bytes());
    args.prepared = block(gmm_prepared_bytes());
    if (gmm_prepare(&args) || gmm_run(&args, workspace)) return 1;
    for (int i = 0; !broken && i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++) sum += a[i * K + k] * b[k * N + j];
            if (c[i * N + j] == sum) continue;
            printf("C[%d,%d] is %g, expected %g\n", i, j, (double)c[i * N + j], (double)sum);
            return 1;
        }
    return 0;
}
