/* A pool of threads that share the pieces of one phase of work after another.
 *
 * A phase is over when its pieces are done, whoever did them: a thread that the system gives no time is not waited for,
 * unless it has taken a piece. What comes out does not depend on who did what.
 */
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
    int open, inside, stopping; /* whether threads may still come to the work, how many are at it */
    Work work;
    void *job;
    struct {
        atomic_int taken, done;
    } phases[PHASES]; /* pieces of each */
};

/* NULL when the system gives no threads. The caller's own is one of them. */
Pool *pool_new(int threads);
void pool_free(Pool *pool);
/* Runs `work` on the caller's thread and on those of the pool that come in time. It takes the pieces of its phases, the
 * same number on every thread, in the same order. */
void pool_run(Pool *pool, Work work, void *job);
/* Waits until so many pieces of a phase are done. */
void pool_meet(Pool *pool, int phase, int pieces);

/* The next piece of so many of a phase, or -1. */
static inline int pool_take(Pool *pool, int phase, int pieces) {
    int piece = atomic_fetch_add_explicit(&pool->phases[phase].taken, 1, memory_order_relaxed);
    return piece < pieces ? piece : -1;
}

/* A piece that was taken is done. */
static inline void pool_done(Pool *pool, int phase) {
    atomic_fetch_add_explicit(&pool->phases[phase].done, 1, memory_order_release);
}

#endif
