/* record_vfork CALLS: a thread that has not called yet makes a child that shares its memory, and calls in it; then this
 * thread and a new one call at once. */
#include "record_host.h"
#include <pthread.h>

static uint64_t each;

static void *newest(void *unused)
{
    take(3);
    calls(3, each);
    return unused;
}

static void *parent(void *unused)
{
    pid_t child = vfork();
    if (child == 0) {
        take(1);
        calls(1, 5);
        _exit(0);
    }
    reap(child);
    take(2);
    calls(2, each);
    pthread_t thread;
    pthread_create(&thread, NULL, newest, NULL);
    while (truth->lanes[3].ended == 0)
        sched_yield();
    calls(2, each);
    pthread_join(thread, NULL);
    return unused;
}

int main(int argc, char **argv)
{
    begin();
    if (argc < 2)
        return 2;
    each = (uint64_t)atoll(argv[1]);
    take(0);
    calls(0, 10);
    pthread_t thread;
    pthread_create(&thread, NULL, parent, NULL);
    pthread_join(thread, NULL);
    calls(0, 10);
    printf("all have called\n");
    return 0;
}
