/* A pool of threads that share the pieces of one phase of work after another.
 *
 * A phase ends when its pieces are done by any threads; a thread that is not scheduled delays it only if it has taken a
 * piece. Results do not depend on which thread does which piece.
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
    int open, inside, stopping; /* whether threads may still join the work, how many have, whether to quit */
    Work work;
    void *job;
    struct {
        atomic_int taken, done;
    } phases[PHASES]; /* pieces of each */
};

/* NULL if threads cannot be started. The caller's own thread is one of them. */
Pool *pool_new(int threads);
void pool_free(Pool *pool);
/* Runs `work` on the caller's thread and on the pool's threads that join in time. All threads go through the same phases in
 * the same order, each with the same number of pieces. */
void pool_run(Pool *pool, Work work, void *job);
/* Waits until `pieces` pieces of a phase are done. */
void pool_meet(Pool *pool, int phase, int pieces);

/* The next of `pieces` pieces of a phase, or -1. */
static inline int pool_take(Pool *pool, int phase, int pieces) {
    int piece = atomic_fetch_add_explicit(&pool->phases[phase].taken, 1, memory_order_relaxed);
    return piece < pieces ? piece : -1;
}

/* Marks a taken piece as done. */
static inline void pool_done(Pool *pool, int phase) {
    atomic_fetch_add_explicit(&pool->phases[phase].done, 1, memory_order_release);
}

#endif
