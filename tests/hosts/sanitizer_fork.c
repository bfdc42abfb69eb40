/* A program with threads that copies and forks, and whose child copies. */
#include "guest_host.h"
#include <pthread.h>

static int over;

static void *thread(void *unused)
{
    copies(2);
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
        usleep(1000);
    return unused;
}

int main(void)
{
    limit();
    pthread_t id;
    copies(1);
    pthread_create(&id, NULL, thread, NULL);
    pid_t child = fork();
    if (child == 0) {
        copies(5);
        exit(0);
    }
    reap(child);
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    pthread_join(id, NULL);
    printf("done\n");
    return 0;
}
