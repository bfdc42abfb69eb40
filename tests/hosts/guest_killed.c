/* Four threads call until the process is killed; with an argument, until main returns. The file `truth` says how
 * far each thread is: before a call, after it. */
#include "guest_host.h"
#include <pthread.h>
#include <sys/mman.h>

enum { THREADS = 4 };

static volatile uint64_t *truth;

static void *hammer(void *number)
{
    volatile uint64_t *mine = truth + 8 * (size_t)number;
    for (;;) {
        mine[0]++;
        copies(1);
        mine[1]++;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    limit();
    int fd = open("truth", O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096) != 0)
        return 2;
    truth = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, hammer, (void *)i);
    (void)argv;
    for (size_t i = 0; argc > 1 && i < THREADS; i++)
        while (truth[8 * i + 1] < 500)
            sched_yield();
    if (argc > 1)
        return 0;
    pthread_join(threads[0], NULL);
    return 3;
}
