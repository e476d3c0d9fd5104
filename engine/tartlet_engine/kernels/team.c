/* A team of threads that compute a step together, and the barrier between its parts.
 *
 * A step has hundreds of barriers, so waiting spins; a thread that has waited long gives up its turn, because whoever
 * it waits for may need this very core. Between steps the threads spin a little longer than a step's preparation takes,
 * and then sleep. The thread that calls tartlet_team_run() is member 0. */

#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "common.h"

enum { PAUSES_BEFORE_YIELD = 2000, PAUSES_BETWEEN_YIELDS = 200, SPIN_MICROSECONDS = 300 };

struct tartlet_team {
    int num_threads;
    int num_started; /* besides the caller */
    pthread_t *threads;
    void (*task)(void *argument, int thread);
    void *argument;
    int is_stopping;
    pthread_mutex_t mutex;
    pthread_cond_t has_task;
    _Alignas(64) atomic_uint num_tasks;   /* given out so far */
    _Alignas(64) atomic_int num_waiting;  /* at the barrier */
    _Alignas(64) atomic_uint num_barriers; /* passed so far */
};

typedef struct {
    tartlet_team *team;
    int index;
} member;

int tartlet_team_size(const tartlet_team *team) { return team->num_threads; }

/* Spin until the counter has left `seen`. */
static void spin_until_changed(atomic_uint *counter, unsigned seen)
{
    int num_pauses = 0;
    while (atomic_load_explicit(counter, memory_order_acquire) == seen) {
        _mm_pause();
        if (++num_pauses > PAUSES_BEFORE_YIELD) {
            sched_yield();
            num_pauses -= PAUSES_BETWEEN_YIELDS;
        }
    }
}

/* The barrier: returns when all threads of the team have called it. */
void tartlet_team_wait(tartlet_team *team)
{
    if (team->num_threads == 1)
        return;
    const unsigned seen = atomic_load_explicit(&team->num_barriers, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&team->num_waiting, 1, memory_order_acq_rel) == team->num_threads - 1) {
        atomic_store_explicit(&team->num_waiting, 0, memory_order_relaxed);
        atomic_store_explicit(&team->num_barriers, seen + 1, memory_order_release);
    } else {
        spin_until_changed(&team->num_barriers, seen);
    }
}

static int64_t now_microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Wait for the next task: spin, then sleep. */
static void await_task(tartlet_team *team, unsigned seen)
{
    const int64_t deadline = now_microseconds() + SPIN_MICROSECONDS;
    while (now_microseconds() < deadline) {
        for (int i = 0; i < PAUSES_BETWEEN_YIELDS; i++) {
            if (atomic_load_explicit(&team->num_tasks, memory_order_acquire) != seen)
                return;
            _mm_pause();
        }
        sched_yield();
    }
    pthread_mutex_lock(&team->mutex);
    while (atomic_load_explicit(&team->num_tasks, memory_order_acquire) == seen)
        pthread_cond_wait(&team->has_task, &team->mutex);
    pthread_mutex_unlock(&team->mutex);
}

static void *run_member(void *argument)
{
    const member self = *(member *)argument;
    tartlet_team *team = self.team;
    free(argument);
    for (unsigned seen = 0;; seen++) {
        await_task(team, seen);
        if (team->is_stopping)
            return NULL;
        team->task(team->argument, self.index);
        tartlet_team_wait(team);
    }
}

static void give_out(tartlet_team *team)
{
    pthread_mutex_lock(&team->mutex);
    atomic_fetch_add_explicit(&team->num_tasks, 1, memory_order_release);
    pthread_cond_broadcast(&team->has_task);
    pthread_mutex_unlock(&team->mutex);
}

/* Run the task on every thread of the team, this one included; returns when all have ended. One call at a time. */
void tartlet_team_run(tartlet_team *team, void (*task)(void *argument, int thread), void *argument)
{
    if (team->num_threads > 1) {
        team->task = task;
        team->argument = argument;
        give_out(team);
    }
    task(argument, 0);
    tartlet_team_wait(team);
}

/* Stop the threads and free the team. NULL is ignored. */
void tartlet_team_stop(tartlet_team *team)
{
    if (!team)
        return;
    team->is_stopping = 1;
    give_out(team);
    for (int i = 0; i < team->num_started; i++)
        pthread_join(team->threads[i], NULL);
    pthread_cond_destroy(&team->has_task);
    pthread_mutex_destroy(&team->mutex);
    free(team->threads);
    free(team);
}

static int start_member(tartlet_team *team, int index)
{
    member *self = malloc(sizeof *self);
    if (!self)
        return 0;
    *self = (member){team, index};
    if (pthread_create(&team->threads[index - 1], NULL, run_member, self)) {
        free(self);
        return 0;
    }
    team->num_started++;
    return 1;
}

/* Start num_threads - 1 threads. NULL if the system has no memory or no threads left. */
tartlet_team *tartlet_team_start(int num_threads)
{
    tartlet_team *team = aligned_alloc(64, sizeof *team);
    if (!team)
        return NULL;
    *team = (tartlet_team){.num_threads = num_threads};
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->has_task, NULL);
    team->threads = calloc((size_t)num_threads, sizeof *team->threads);
    int is_whole = team->threads != NULL;
    for (int index = 1; is_whole && index < num_threads; index++)
        is_whole = start_member(team, index);
    if (is_whole)
        return team;
    tartlet_team_stop(team);
    return NULL;
}
