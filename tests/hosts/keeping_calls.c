/* keeping_calls PROCESSES THREADS CALLS [CALLS_A_MS]: each thread of each process makes CALLS calls, back to back or as many
 * each millisecond; no process begins before all have been started. Prints how many calls all of them made.
 * keeping_calls spin: a busy loop that ends with its parent. */
#define _GNU_SOURCE
#include "acl/acl.h"
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 4096, MOST = 64, LIMIT = 300 };

static char from[SIZE], to[SIZE];
static unsigned long threads, calls, calls_a_ms;
static pthread_barrier_t begun;
static uint64_t *made; /* shared by all processes */

static void make_calls(unsigned long count)
{
    for (unsigned long call = 0; call < count; call++)
        if (aclrtMemcpyAsync(to, SIZE, from, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, (aclrtStream)from) != 0)
            _exit(4);
    __atomic_fetch_add(made, count, __ATOMIC_RELAXED);
}

static void *work(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&begun);
    if (calls_a_ms == 0) {
        make_calls(calls);
        return NULL;
    }
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    for (unsigned long left = calls; left > 0;) {
        unsigned long now = left < calls_a_ms ? left : calls_a_ms;
        make_calls(now);
        left -= now;
        due.tv_nsec += 1000000;
        due.tv_sec += due.tv_nsec / 1000000000;
        due.tv_nsec %= 1000000000;
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) != 0) {
        }
    }
    return NULL;
}

static void all_threads(void)
{
    pthread_t ids[MOST];
    pthread_barrier_init(&begun, NULL, (unsigned)threads);
    for (unsigned long at = 0; at < threads; at++)
        if (pthread_create(&ids[at], NULL, work, NULL) != 0)
            _exit(3);
    for (unsigned long at = 0; at < threads; at++)
        pthread_join(ids[at], NULL);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "spin")) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            __asm__ volatile("");
    }
    if (argc < 4)
        return 2;
    alarm(LIMIT);
    unsigned long processes = strtoul(argv[1], NULL, 10);
    threads = strtoul(argv[2], NULL, 10);
    calls = strtoul(argv[3], NULL, 10);
    calls_a_ms = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
    made = (uint64_t *)mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED || threads > MOST || processes > MOST)
        return 2;
    if (processes == 1) {
        all_threads();
        printf("%llu\n", (unsigned long long)*made);
        return 0;
    }
    int gate[2];
    if (pipe(gate) != 0)
        return 2;
    for (unsigned long at = 0; at < processes; at++) {
        if (fork() == 0) {
            alarm(LIMIT);
            close(gate[1]);
            char byte;
            while (read(gate[0], &byte, 1) > 0) {
            }
            all_threads();
            exit(0);
        }
    }
    close(gate[1]);
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status;
    printf("%llu\n", (unsigned long long)*made);
    return failed != 0;
}
