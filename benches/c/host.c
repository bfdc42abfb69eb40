/*
 * The host: calls aclrtMemcpyAsync and prints what a call cost, one "key number" a line.
 *
 *   host warm CPU WARM_MS BURST_US BURSTS   first_call_ns, then ns a call of each burst, then rss_kib
 *   host cold CPU GROUPS                    cold_ns of each group: a call after 4 MiB of other memory were touched
 *   host threads COUNT MS                   calls_per_s of all threads together
 *   host calls COUNT                        nothing: so many calls, for a tool that counts instructions
 */
#define _GNU_SOURCE
#include "acl/acl.h"
#include "ticks.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char from[4096], to[4096];

static inline aclError copy(void)
{
    return aclrtMemcpyAsync(to, sizeof to, from, sizeof from, ACL_MEMCPY_HOST_TO_DEVICE, (aclrtStream)from);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The time of so many calls. */
static uint64_t run(uint64_t calls)
{
    uint64_t begin = now_ns();
    for (uint64_t call = 0; call < calls; call++) {
        if (copy() != 0) {
            fputs("host: a call failed\n", stderr);
            exit(1);
        }
    }
    return now_ns() - begin;
}

/* Calls for `warm_ms`; returns how many calls fill `span_ns`. */
static uint64_t warm_up(uint64_t warm_ms, uint64_t span_ns)
{
    uint64_t spent = 0, calls = 0;
    do {
        spent += run(64);
        calls += 64;
    } while (spent < warm_ms * 1000000u);
    uint64_t fill = (uint64_t)((double)span_ns * (double)calls / (double)spent);
    return fill < 16 ? 16 : fill;
}

/* Pins the calling thread to the `which`th of the processors that we may use. Threads that a preloaded library
 * has started before stay free. */
static void pin(unsigned which)
{
    cpu_set_t may, one;
    if (sched_getaffinity(0, sizeof may, &may) != 0) {
        return;
    }
    unsigned left = which % (unsigned)CPU_COUNT(&may);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &may) && left-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
    }
}

/* What is resident, exactly; the number in /proc/self/status is kept in batches. */
static long rss_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "Rss: %ld", &kib) != 1) {
    }
    if (file) {
        fclose(file);
    }
    return kib;
}

static void warm(unsigned cpu, uint64_t warm_ms, uint64_t burst_us, uint64_t bursts)
{
    printf("first_call_ns %llu\n", (unsigned long long)run(1));
    pin(cpu);
    uint64_t calls = warm_up(warm_ms, burst_us * 1000u);
    for (uint64_t burst = 0; burst < bursts; burst++) {
        printf("ns %.4f\n", (double)run(calls) / (double)calls);
    }
    printf("rss_kib %ld\n", rss_kib());
}

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The mean of the middle half: an interrupt does not count, and neither does a coarse clock. */
static double middle(uint64_t *values, size_t count)
{
    double sum = 0;
    qsort(values, count, sizeof *values, by_value);
    size_t first = count / 4, last = count - count / 4;
    for (size_t at = first; at < last; at++) {
        sum += (double)values[at];
    }
    return sum / (double)(last - first);
}

enum { DISTURBED = 4 << 20, LINE = 64, GROUP = 24 };

static void disturb(volatile char *memory)
{
    for (size_t at = 0; at < DISTURBED; at += LINE) {
        memory[at]++;
    }
}

/* Ticks that a cold call takes: the middle of a group. */
static double cold_call(char *memory)
{
    uint64_t with[GROUP], without[GROUP];
    for (size_t sample = 0; sample < GROUP; sample++) {
        /* The empty pair says what reading the clock costs in the same state. */
        disturb(memory);
        uint64_t begin = ticks_in_order();
        without[sample] = ticks_in_order() - begin;
        disturb(memory);
        begin = ticks_in_order();
        copy();
        with[sample] = ticks_in_order() - begin;
    }
    return middle(with, GROUP) - middle(without, GROUP);
}

static void cold(unsigned cpu, size_t groups)
{
    char *memory = calloc(1, DISTURBED);
    double *spent = calloc(groups, sizeof *spent);
    if (!memory || !spent) {
        exit(1);
    }
    run(1);
    pin(cpu);
    warm_up(1, 1);
    uint64_t ticks_then = ticks(), ns_then = now_ns();
    for (size_t group = 0; group < groups; group++) {
        spent[group] = cold_call(memory);
    }
    double ns_a_tick = (double)(now_ns() - ns_then) / (double)(ticks() - ticks_then);
    for (size_t group = 0; group < groups; group++) {
        printf("cold_ns %.3f\n", spent[group] * ns_a_tick);
    }
}

struct worker {
    pthread_t thread;
    unsigned number;
    uint64_t span_ns;
    pthread_barrier_t *start;
    double rate;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    run(1);
    pin(worker->number);
    uint64_t calls = warm_up(2, worker->span_ns);
    pthread_barrier_wait(worker->start);
    worker->rate = (double)calls * 1e9 / (double)run(calls);
    return NULL;
}

static void threads(unsigned count, uint64_t ms)
{
    struct worker *workers = calloc(count, sizeof *workers);
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, count);
    for (unsigned at = 0; workers && at < count; at++) {
        workers[at] = (struct worker){.number = at, .span_ns = ms * 1000000u, .start = &start};
        if (pthread_create(&workers[at].thread, NULL, work, &workers[at]) != 0) {
            exit(1);
        }
    }
    double rate = 0;
    for (unsigned at = 0; workers && at < count; at++) {
        pthread_join(workers[at].thread, NULL);
        rate += workers[at].rate;
    }
    printf("calls_per_s %.0f\n", rate);
}

int main(int argc, char **argv)
{
    unsigned long of[4] = {0};
    for (int at = 2; at < argc && at < 6; at++) {
        of[at - 2] = strtoul(argv[at], NULL, 10);
    }
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "warm") == 0) {
        warm((unsigned)of[0], of[1], of[2], of[3]);
    } else if (strcmp(what, "cold") == 0) {
        cold((unsigned)of[0], of[1]);
    } else if (strcmp(what, "threads") == 0) {
        threads((unsigned)of[0], of[1]);
    } else if (strcmp(what, "calls") == 0) {
        run(of[0]);
    } else {
        fputs("host: warm, cold, threads or calls\n", stderr);
        return 2;
    }
    return 0;
}
