/* The host's threads: how fast they are together, what each keeps resident, what they leave when they are gone. */
#define _GNU_SOURCE
#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

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
    uint64_t calls = warm_up(run, 64, 2, worker->span_ns);
    pthread_barrier_wait(worker->start);
    worker->rate = (double)calls * 1e9 / (double)run(calls);
    return NULL;
}

void threads(unsigned count, uint64_t ms)
{
    struct worker *workers = calloc(count, sizeof *workers);
    must(workers != NULL, "no memory");
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, count);
    for (unsigned at = 0; at < count; at++) {
        workers[at] = (struct worker){.number = at, .span_ns = ms * 1000000u, .start = &start};
        must(pthread_create(&workers[at].thread, NULL, work, &workers[at]) == 0, "no thread");
    }
    double rate = 0;
    for (unsigned at = 0; at < count; at++) {
        pthread_join(workers[at].thread, NULL);
        rate += workers[at].rate;
    }
    printf("calls_per_s %.0f\n", rate);
}

/* Twice what a ring has room for: all of it has been written to. */
enum { FILL = 2048 };

static pthread_barrier_t all_called;

static void *call_and_wait(void *unused)
{
    (void)unused;
    run(FILL);
    pthread_barrier_wait(&all_called);
    /* Until the process ends. */
    pthread_barrier_wait(&all_called);
    return NULL;
}

void alive(unsigned count)
{
    run(FILL);
    long one = rss_kib();
    pthread_barrier_init(&all_called, NULL, count + 1);
    for (unsigned at = 0; at < count; at++) {
        pthread_t thread;
        must(pthread_create(&thread, NULL, call_and_wait, NULL) == 0, "no thread");
    }
    pthread_barrier_wait(&all_called);
    printf("rss_more_kib %.2f\n", (double)(rss_kib() - one) / count);
}

static void *call_together(void *unused)
{
    (void)unused;
    run(5);
    pthread_barrier_wait(&all_called);
    run(5);
    return NULL;
}

void many(unsigned count)
{
    pthread_t *threads = calloc(count, sizeof *threads);
    must(threads != NULL, "no memory");
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    pthread_barrier_init(&all_called, NULL, count);
    run(1);
    uint64_t begin = now_ns();
    for (unsigned at = 0; at < count; at++)
        must(pthread_create(&threads[at], &small, call_together, NULL) == 0, "no thread");
    for (unsigned at = 0; at < count; at++)
        pthread_join(threads[at], NULL);
    printf("many_ms %.3f\n", (double)(now_ns() - begin) / 1e6);
}

static void *call_thrice(void *unused)
{
    (void)unused;
    run(3);
    return NULL;
}

/* All files of a folder: a size of each, added. */
static double folder_kib(const char *path, double (*size)(const struct stat *))
{
    double bytes = 0;
    DIR *folder = opendir(path);
    must(folder != NULL, path);
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat file;
        if (fstatat(dirfd(folder), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(file.st_mode)) {
            bytes += size(&file);
        }
    }
    closedir(folder);
    return bytes / 1024;
}

static double blocks(const struct stat *file)
{
    return (double)file->st_blocks * 512;
}

static double length_or_blocks(const struct stat *file)
{
    double length = (double)file->st_size;
    return blocks(file) > length ? blocks(file) : length;
}

double blocks_kib(const char *path)
{
    return folder_kib(path, blocks);
}

void brief(unsigned count)
{
    for (unsigned at = 0; at < count; at++) {
        pthread_t thread;
        must(pthread_create(&thread, NULL, call_thrice, NULL) == 0, "no thread");
        pthread_join(thread, NULL);
    }
    /* While the process lives: what it has used may go with it. */
    const char *folder = getenv("ACLSHIM_RING_DIR");
    printf("ring_kib %.1f\n", folder ? folder_kib(folder, length_or_blocks) : 0.0);
}
