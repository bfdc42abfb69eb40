/* The host's modes for what becomes of records: bursts, a process that sleeps, full speed, threads that live at once. */
#define _GNU_SOURCE
#include "host.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

void print_memory(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "VmHWM: %ld", &kib) != 1) {
    }
    if (file) {
        fclose(file);
    }
    const char *folder = getenv("ACLSHIM_RING_DIR");
    printf("rss_kib %ld\nring_kib %.1f\n", kib, folder ? blocks_kib(folder) : 0.0);
}

static pthread_barrier_t begun;
static uint64_t calls_a_thread;

static void *burst(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&begun);
    run(calls_a_thread);
    return NULL;
}

void bursts(unsigned count, uint64_t calls, int waits)
{
    pthread_t *threads = calloc(count, sizeof *threads);
    must(threads != NULL, "no memory");
    calls_a_thread = calls;
    pthread_barrier_init(&begun, NULL, count);
    /* Standard input ends when all processes of a group have been started. */
    char byte;
    while (waits && read(STDIN_FILENO, &byte, 1) > 0) {
    }
    for (unsigned at = 0; at < count; at++) {
        must(pthread_create(&threads[at], NULL, burst, NULL) == 0, "no thread");
    }
    for (unsigned at = 0; at < count; at++) {
        pthread_join(threads[at], NULL);
    }
    printf("made %llu\n", (unsigned long long)(count * calls));
    print_memory();
}

void idle(uint64_t ms)
{
    run(1);
    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    struct timespec span = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)};
    nanosleep(&span, NULL);
}

void full(uint64_t ms)
{
    uint64_t begin = now_ns(), calls = 0;
    while (now_ns() - begin < ms * 1000000u) {
        run(1000);
        calls += 1000;
    }
    printf("made %llu\n", (unsigned long long)calls);
    print_memory();
}

static pthread_barrier_t all_called, all_seen;

static void *call_twice(void *unused)
{
    (void)unused;
    run(5);
    pthread_barrier_wait(&all_called);
    pthread_barrier_wait(&all_seen);
    run(5);
    return NULL;
}

void live(unsigned count)
{
    pthread_t *threads = calloc(count, sizeof *threads);
    must(threads != NULL, "no memory");
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    pthread_barrier_init(&all_called, NULL, count + 1);
    pthread_barrier_init(&all_seen, NULL, count + 1);
    run(1);
    uint64_t begin = now_ns();
    for (unsigned at = 0; at < count; at++) {
        must(pthread_create(&threads[at], &small, call_twice, NULL) == 0, "no thread");
    }
    pthread_barrier_wait(&all_called);
    /* To look at the memory takes time, which is not that of the threads. */
    uint64_t pause = now_ns();
    long resident = rss_kib();
    const char *folder = getenv("ACLSHIM_RING_DIR");
    double ring = folder ? blocks_kib(folder) : 0.0;
    begin += now_ns() - pause;
    pthread_barrier_wait(&all_seen);
    for (unsigned at = 0; at < count; at++) {
        pthread_join(threads[at], NULL);
    }
    printf("live_ms %.3f\nrss_kib %ld\nring_kib %.1f\n", (double)(now_ns() - begin) / 1e6, resident, ring);
    printf("made %llu\n", 10ull * count + 1);
}

void spin(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        __asm__ volatile("");
    }
}
