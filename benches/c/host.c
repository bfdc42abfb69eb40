/*
 * The host: calls aclrtMemcpyAsync and prints what a call cost, one "key number" a line.
 *
 *   host warm CPU WARM_MS BURST_US BURSTS    first_call_ns, then ns a call of each burst, rss_kib, made: all its calls
 *   host cold CPU GROUPS                     cold_ns of each group: a call after 4 MiB of other memory were touched
 *   host batch CPU WARM_MS BURST_US BURSTS   batch_ns of each burst: a batch of 1,000 items
 *   host threads COUNT MS                    calls_per_s of all threads together
 *   host alive COUNT                         rss_more_kib: what each of so many more threads keeps resident
 *   host many COUNT                          many_ms: how long so many threads take that live at once, ten calls each
 *   host brief COUNT                         ring_kib: what so many threads, one after the other, leave in ACLSHIM_RING_DIR
 *   host paced COUNT CALLS_A_MS MS           made: calls of all threads; late_us: how far a thread fell behind; rss_kib, ring_kib
 *   host bursts COUNT CALLS WAITS            made: calls of all threads, at full speed; with WAITS after standard input has ended
 *   host full MS                             made: calls of one thread at full speed
 *   host live COUNT                          live_ms as many_ms, and what they take while all of them live: rss_kib, ring_kib
 *   host idle MS                             pid: one call, then one sleep
 *   host spin                                nothing: a busy loop, until it is killed
 *   host calls COUNT                         nothing: so many calls, for a tool that counts instructions
 */
#define _GNU_SOURCE
#include "host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

char from[4096], to[4096];

void must(int held, const char *what)
{
    if (!held) {
        fprintf(stderr, "host: %s\n", what);
        exit(1);
    }
}

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static _Thread_local uint64_t made;

uint64_t run(uint64_t calls)
{
    uint64_t begin = now_ns();
    for (uint64_t call = 0; call < calls; call++) {
        if (copy() != 0) {
            must(0, "a call failed");
        }
    }
    uint64_t spent = now_ns() - begin;
    made += calls;
    return spent;
}

uint64_t warm_up(runner *make, uint64_t group, uint64_t warm_ms, uint64_t span_ns)
{
    uint64_t spent = 0, calls = 0;
    do {
        spent += make(group);
        calls += group;
    } while (spent < warm_ms * 1000000u);
    uint64_t fill = (uint64_t)((double)span_ns * (double)calls / (double)spent);
    return fill < 16 ? 16 : fill;
}

void pin(unsigned which)
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

/* Exactly; the number in /proc/self/status is kept in batches. */
long rss_kib(void)
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
    uint64_t calls = warm_up(run, 64, warm_ms, burst_us * 1000u);
    for (uint64_t burst = 0; burst < bursts; burst++) {
        printf("ns %.4f\n", (double)run(calls) / (double)calls);
    }
    printf("rss_kib %ld\n", rss_kib());
    printf("made %llu\n", (unsigned long long)made);
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
    must(memory && spent, "no memory");
    run(1);
    pin(cpu);
    warm_up(run, 64, 1, 1);
    uint64_t ticks_then = ticks(), ns_then = now_ns();
    for (size_t group = 0; group < groups; group++) {
        spent[group] = cold_call(memory);
    }
    double ns_a_tick = (double)(now_ns() - ns_then) / (double)(ticks() - ticks_then);
    for (size_t group = 0; group < groups; group++) {
        printf("cold_ns %.3f\n", spent[group] * ns_a_tick);
    }
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
    } else if (strcmp(what, "batch") == 0) {
        batch((unsigned)of[0], of[1], of[2], of[3]);
    } else if (strcmp(what, "threads") == 0) {
        threads((unsigned)of[0], of[1]);
    } else if (strcmp(what, "alive") == 0) {
        alive((unsigned)of[0]);
    } else if (strcmp(what, "many") == 0) {
        many((unsigned)of[0]);
    } else if (strcmp(what, "brief") == 0) {
        brief((unsigned)of[0]);
    } else if (strcmp(what, "paced") == 0) {
        paced((unsigned)of[0], of[1], of[2]);
    } else if (strcmp(what, "bursts") == 0) {
        bursts((unsigned)of[0], of[1], of[2] != 0);
    } else if (strcmp(what, "full") == 0) {
        full(of[0]);
    } else if (strcmp(what, "live") == 0) {
        live((unsigned)of[0]);
    } else if (strcmp(what, "idle") == 0) {
        idle(of[0]);
    } else if (strcmp(what, "spin") == 0) {
        spin();
    } else if (strcmp(what, "calls") == 0) {
        run(of[0]);
    } else {
        fputs("host: no such mode; see host.c\n", stderr);
        return 2;
    }
    return 0;
}
