/* A team of threads that compute a step together, and the barrier between its parts.
 *
 * A step has hundreds of barriers, so waiting spins; a thread that has waited long gives up its turn, because whoever
 * it waits for may need this very core. Between steps the threads spin a little longer than a step's preparation takes,
 * and then sleep. The thread that calls tartlet_team_run() is member 0.
 *
 * Where other processes keep the cores busy, a thread loses more time waiting for one that has no core than it gains
 * from its help. So the team notes what it lost: a run that waited more than half of its time halves the number of
 * active threads, and after a while more are tried again. Results do not depend on the number of threads. */

#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "common.h"

enum { PAUSES_BEFORE_YIELD = 2000, PAUSES_BETWEEN_YIELDS = 200, SPIN_MICROSECONDS = 300 };

/* Microseconds of running after which more threads are tried again: the first time, and after failures in a row. */
enum { FIRST_PATIENCE = 20 * 1000, LAST_PATIENCE = 320 * 1000 };

/* What a task is given out with: its number, and how many threads take part. */
enum { MAX_THREADS = 255, THREADS_MASK = 0xFF, ONE_TASK = 0x100 };

struct tartlet_team {
    int num_threads;
    int num_active;
    int64_t patience;
    int64_t run_microseconds;  /* with this number of active threads */
    int64_t lost_microseconds; /* of member 0, in this run, in waits that were long */
    int num_started;           /* besides the caller */
    pthread_t *threads;
    void (*task)(void *argument, int thread);
    void *argument;
    int is_stopping;
    pthread_mutex_t mutex;
    pthread_cond_t has_task;
    _Alignas(64) atomic_uint given_out;    /* number of the last task and of its threads */
    _Alignas(64) atomic_int num_waiting;   /* at the barrier */
    _Alignas(64) atomic_uint num_barriers; /* passed so far */
};

typedef struct {
    tartlet_team *team;
    int index;
} member;

/* All threads, and those that take part in the run in progress. */
int tartlet_team_size(const tartlet_team *team) { return team->num_threads; }
int tartlet_team_active(const tartlet_team *team) { return team->num_active; }

static int64_t now_microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Spin, then yield, until the counter has left `seen`. Returns the microseconds spent yielding. */
static int64_t wait_for_change(atomic_uint *counter, unsigned seen)
{
    for (int i = 0; i < PAUSES_BEFORE_YIELD; i++) {
        if (atomic_load_explicit(counter, memory_order_acquire) != seen)
            return 0;
        _mm_pause();
    }
    const int64_t start = now_microseconds();
    while (atomic_load_explicit(counter, memory_order_acquire) == seen) {
        sched_yield();
        for (int i = 0; i < PAUSES_BETWEEN_YIELDS; i++)
            _mm_pause();
    }
    return now_microseconds() - start;
}

/* The barrier: returns when all active threads have called it. */
void tartlet_team_wait(tartlet_team *team, int thread)
{
    if (team->num_active == 1)
        return;
    const unsigned seen = atomic_load_explicit(&team->num_barriers, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&team->num_waiting, 1, memory_order_acq_rel) == team->num_active - 1) {
        atomic_store_explicit(&team->num_waiting, 0, memory_order_relaxed);
        atomic_store_explicit(&team->num_barriers, seen + 1, memory_order_release);
    } else {
        const int64_t lost = wait_for_change(&team->num_barriers, seen);
        if (thread == 0)
            team->lost_microseconds += lost;
    }
}

/* Wait for a task after the one seen last: spin, then sleep. Returns what it was given out with. */
static unsigned await_task(tartlet_team *team, unsigned seen)
{
    const int64_t deadline = now_microseconds() + SPIN_MICROSECONDS;
    while (now_microseconds() < deadline) {
        for (int i = 0; i < PAUSES_BETWEEN_YIELDS; i++) {
            const unsigned given_out = atomic_load_explicit(&team->given_out, memory_order_acquire);
            if (given_out != seen)
                return given_out;
            _mm_pause();
        }
        sched_yield();
    }
    unsigned given_out = seen;
    pthread_mutex_lock(&team->mutex);
    while ((given_out = atomic_load_explicit(&team->given_out, memory_order_acquire)) == seen)
        pthread_cond_wait(&team->has_task, &team->mutex);
    pthread_mutex_unlock(&team->mutex);
    return given_out;
}

static void *run_member(void *argument)
{
    const member self = *(member *)argument;
    tartlet_team *team = self.team;
    free(argument);
    for (unsigned seen = 0;;) {
        seen = await_task(team, seen);
        if ((int)(seen & THREADS_MASK) <= self.index)
            continue; /* it does not take part, and may look again when the task is long over */
        if (team->is_stopping)
            return NULL;
        team->task(team->argument, self.index);
        tartlet_team_wait(team, self.index);
    }
}

static void give_out(tartlet_team *team, int num_threads)
{
    pthread_mutex_lock(&team->mutex);
    const unsigned last = atomic_load_explicit(&team->given_out, memory_order_relaxed);
    const unsigned next = (last & ~(unsigned)THREADS_MASK) + ONE_TASK + (unsigned)num_threads;
    atomic_store_explicit(&team->given_out, next, memory_order_release);
    pthread_cond_broadcast(&team->has_task);
    pthread_mutex_unlock(&team->mutex);
}

/* Choose the number of active threads for the next run, after one that took so long. */
static void adapt(tartlet_team *team, int64_t microseconds)
{
    const int64_t before = team->run_microseconds;
    team->run_microseconds += microseconds;
    if (2 * team->lost_microseconds > microseconds) {
        const int64_t doubled = 2 * team->patience < LAST_PATIENCE ? 2 * team->patience : LAST_PATIENCE;
        team->patience = before < team->patience ? doubled : FIRST_PATIENCE;
        team->num_active = (team->num_active + 1) / 2;
        team->run_microseconds = 0;
    } else if (team->num_active < team->num_threads && team->run_microseconds >= team->patience) {
        team->num_active = 2 * team->num_active < team->num_threads ? 2 * team->num_active : team->num_threads;
        team->run_microseconds = 0;
    }
}

/* Run the task on the active threads, this one included; returns when all have ended. One call at a time. */
void tartlet_team_run(tartlet_team *team, void (*task)(void *argument, int thread), void *argument)
{
    if (team->num_threads == 1) {
        task(argument, 0);
        return;
    }
    const int64_t start = now_microseconds();
    team->lost_microseconds = 0;
    if (team->num_active > 1) {
        team->task = task;
        team->argument = argument;
        give_out(team, team->num_active);
    }
    task(argument, 0);
    tartlet_team_wait(team, 0);
    adapt(team, now_microseconds() - start);
}

/* Stop the threads and free the team. NULL is ignored. */
void tartlet_team_stop(tartlet_team *team)
{
    if (!team)
        return;
    team->is_stopping = 1;
    give_out(team, THREADS_MASK);
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

/* Start num_threads - 1 threads, of at most MAX_THREADS in all. NULL if the system has no memory or threads left. */
tartlet_team *tartlet_team_start(int num_threads)
{
    tartlet_team *team = num_threads <= MAX_THREADS ? aligned_alloc(64, sizeof *team) : NULL;
    if (!team)
        return NULL;
    *team = (tartlet_team){.num_threads = num_threads, .num_active = num_threads, .patience = FIRST_PATIENCE};
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
