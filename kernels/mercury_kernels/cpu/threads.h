/* A pool of threads that share one piece of work after another, meeting between its phases. */
#ifndef MERCURY_THREADS_H
#define MERCURY_THREADS_H

#include <pthread.h>
#include <stdatomic.h>

#define PHASES 4096

typedef struct Pool Pool;
typedef void (*Work)(void *job, Pool *pool, int thread);

struct Pool {
    int threads;
    pthread_t *workers;
    pthread_mutex_t mutex;
    pthread_cond_t begun, done;
    long generation;
    int busy, stopping;
    Work work;
    void *job;
    atomic_int arrived;
    atomic_int passed;
    atomic_int next[PHASES]; /* pieces of each phase that are taken */
};

/* NULL when the system gives no threads. The caller's own is one of them. */
Pool *pool_new(int threads);
void pool_free(Pool *pool);
/* Runs `work` on all threads of the pool and returns when all of them have. */
void pool_run(Pool *pool, Work work, void *job);
/* Waits until all threads are here. */
void pool_meet(Pool *pool);

/* The next piece of so many of a phase, or -1. */
static inline int pool_take(Pool *pool, int phase, int pieces) {
    int piece = atomic_fetch_add_explicit(&pool->next[phase], 1, memory_order_relaxed);
    return piece < pieces ? piece : -1;
}

#endif
