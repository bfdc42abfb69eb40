/* The host at a steady pace: every thread makes its calls of a millisecond together, then sleeps until the next one. */
#define _GNU_SOURCE
#include "host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct walker {
    pthread_t thread;
    uint64_t first_ns, calls_a_ms, ms, made, late_ns;
};

static void sleep_until(uint64_t ns)
{
    struct timespec then = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL) != 0) {
    }
}

static void *walk(void *argument)
{
    struct walker *walker = argument;
    for (uint64_t step = 0; step < walker->ms; step++) {
        uint64_t due = walker->first_ns + step * 1000000u;
        /* Who is late does not sleep, and so catches up. */
        sleep_until(due);
        uint64_t late = now_ns() - due;
        walker->late_ns = late > walker->late_ns ? late : walker->late_ns;
        run(walker->calls_a_ms);
        walker->made += walker->calls_a_ms;
    }
    return NULL;
}

void paced(unsigned count, uint64_t calls_a_ms, uint64_t ms)
{
    struct walker *walkers = calloc(count, sizeof *walkers);
    must(walkers != NULL, "no memory");
    uint64_t begin = now_ns() + 10000000u;
    for (unsigned at = 0; at < count; at++) {
        /* Not all at the same moment. */
        uint64_t first = begin + at * 1000000u / count;
        walkers[at] = (struct walker){.first_ns = first, .calls_a_ms = calls_a_ms, .ms = ms};
        must(pthread_create(&walkers[at].thread, NULL, walk, &walkers[at]) == 0, "no thread");
    }
    uint64_t made = 0, late = 0;
    for (unsigned at = 0; at < count; at++) {
        pthread_join(walkers[at].thread, NULL);
        made += walkers[at].made;
        late = walkers[at].late_ns > late ? walkers[at].late_ns : late;
    }
    printf("made %llu\nlate_us %llu\n", (unsigned long long)made, (unsigned long long)late / 1000);
    print_memory();
}
