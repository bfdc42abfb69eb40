/* record_hammer THREADS CALLS [SPIN | relay]: threads call at full speed, CALLS calls each (0: for ever), and none ends
 * before all have begun. With SPIN the process kills itself when another thread has counted so far, and at once after the
 * threads' first calls if it is 0. `relay`: one thread after the other. Without SPIN
 * the main thread has called before, once, so that no thread has to wait for the ring file. SIGUSR1 ends it in order. */
#include "record_host.h"
#include <pthread.h>

static volatile uint64_t wanted;
static pthread_barrier_t all;

static void enough(int signal)
{
    (void)signal;
    wanted = 1;
}

static void *hammer(void *lane)
{
    take((uint64_t)lane);
    call((uint64_t)lane);
    pthread_barrier_wait(&all);
    for (uint64_t i = 1; wanted == 0 || i < wanted; i++)
        call((uint64_t)lane);
    return NULL;
}

int main(int argc, char **argv)
{
    begin();
    if (argc < 3)
        return 2;
    uint64_t threads = (uint64_t)atoll(argv[1]);
    wanted = (uint64_t)atoll(argv[2]);
    signal(SIGUSR1, enough);
    int relay = argc > 3 && !strcmp(argv[3], "relay");
    pthread_barrier_init(&all, NULL, relay ? 1 : (unsigned)threads);
    if (threads == 1 && argc == 3) { /* the main thread itself */
        hammer(0);
        printf("1 thread\n");
        return 0;
    }
    if (argc == 3 || relay) {
        take(threads);
        call(threads);
    }
    pthread_t *ids = calloc(threads, sizeof *ids);
    for (uint64_t i = 0; i < threads; i++) {
        if (pthread_create(&ids[i], NULL, hammer, (void *)i) != 0)
            return 3;
        if (relay)
            pthread_join(ids[i], NULL);
    }
    if (argc > 3 && !relay) {
        for (uint64_t i = 0; i < threads; i++)
            while (truth->lanes[i].begun == 0)
                sched_yield();
        for (volatile uint64_t spin = (uint64_t)atoll(argv[3]); spin > 0; spin--)
            ;
        kill(getpid(), SIGKILL);
    }
    for (uint64_t i = 0; i < threads && !relay; i++)
        pthread_join(ids[i], NULL);
    printf("%d threads\n", (int)threads);
    return 0;
}
