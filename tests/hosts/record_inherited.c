/* record_inherited CALLS: a thread that has called makes a child, in which another thread calls first; then both call. */
#include "record_host.h"
#include <pthread.h>

static uint64_t each;

static void *other(void *unused)
{
    take(1);
    calls(1, each);
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
    pid_t child = fork();
    if (child != 0) {
        reap(child);
        printf("both have called\n");
        return 0;
    }
    pthread_t thread;
    take(2);
    pthread_create(&thread, NULL, other, NULL);
    while (truth->lanes[1].ended == 0)
        sched_yield();
    calls(2, each);
    pthread_join(thread, NULL);
    return 0;
}
