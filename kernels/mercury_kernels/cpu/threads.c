#include "threads.h"

#include <sched.h>
#include <stdlib.h>

/* Spins before a waiting thread yields the processor. */
enum { SPINS = 4000 };

#if defined(__x86_64__)
#define BREATHE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define BREATHE() __asm__ volatile("yield")
#else
#define BREATHE() (void)0
#endif

typedef struct {
    Pool *pool;
    int number;
} Seat;

static void *serve(void *given) {
    Seat seat = *(Seat *)given;
    free(given);
    Pool *pool = seat.pool;
    long seen = 0;
    pthread_mutex_lock(&pool->mutex);
    while (1) {
        while ((pool->generation == seen || !pool->open) && !pool->stopping)
            pthread_cond_wait(&pool->begun, &pool->mutex);
        if (pool->stopping) break;
        seen = pool->generation;
        pool->inside++;
        pthread_mutex_unlock(&pool->mutex);
        pool->work(pool->job, pool, seat.number);
        pthread_mutex_lock(&pool->mutex);
        if (--pool->inside == 0) pthread_cond_signal(&pool->done);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

Pool *pool_new(int threads) {
    Pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->begun, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->workers = calloc((size_t)threads, sizeof *pool->workers);
    pool->threads = 1;
    for (int number = 1; pool->workers && number < threads; number++) {
        Seat *seat = malloc(sizeof *seat);
        if (!seat) break;
        *seat = (Seat){pool, number};
        if (pthread_create(&pool->workers[number], NULL, serve, seat)) {
            free(seat);
            break;
        }
        pool->threads++;
    }
    if (pool->threads == threads) return pool;
    pool_free(pool);
    return NULL;
}

void pool_free(Pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->mutex);
    pool->stopping = 1;
    pthread_cond_broadcast(&pool->begun);
    pthread_mutex_unlock(&pool->mutex);
    for (int number = 1; number < pool->threads; number++) pthread_join(pool->workers[number], NULL);
    pthread_cond_destroy(&pool->begun);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->workers);
    free(pool);
}

void pool_run(Pool *pool, Work work, void *job) {
    for (int phase = 0; phase < PHASES; phase++) {
        atomic_store_explicit(&pool->phases[phase].taken, 0, memory_order_relaxed);
        atomic_store_explicit(&pool->phases[phase].done, 0, memory_order_relaxed);
    }
    if (pool->threads == 1) {
        work(job, pool, 0);
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    pool->work = work;
    pool->job = job;
    pool->open = 1;
    pool->generation++;
    pthread_cond_broadcast(&pool->begun);
    pthread_mutex_unlock(&pool->mutex);
    work(job, pool, 0);
    pthread_mutex_lock(&pool->mutex);
    pool->open = 0;
    while (pool->inside) pthread_cond_wait(&pool->done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

void pool_meet(Pool *pool, int phase, int pieces) {
    atomic_int *done = &pool->phases[phase].done;
    for (int spins = 0; atomic_load_explicit(done, memory_order_acquire) < pieces; spins++) {
        BREATHE();
        if (spins >= SPINS) sched_yield();
    }
}
