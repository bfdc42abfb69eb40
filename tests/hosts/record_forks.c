/* record_forks FORKS CALLS: one thread calls all the while; the other makes children, which call and end by _exit. */
#include "record_host.h"
#include <pthread.h>

static volatile int done;

static void *hammer(void *unused)
{
    take(0);
    while (!done)
        call(0);
    return unused;
}

int main(int argc, char **argv)
{
    begin();
    if (argc < 3)
        return 2;
    uint64_t forks = (uint64_t)atoll(argv[1]), each = (uint64_t)atoll(argv[2]);
    pthread_t thread;
    take(1);
    calls(1, 1);
    pthread_create(&thread, NULL, hammer, NULL);
    while (truth->lanes[0].begun < 10)
        sched_yield();
    for (uint64_t i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(600);
            take(2 + i);
            calls(2 + i, each);
            _exit(0);
        }
        reap(child);
    }
    done = 1;
    pthread_join(thread, NULL);
    printf("%d children\n", (int)forks);
    return 0;
}
