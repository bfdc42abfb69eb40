/* Four threads call until somebody kills the process. The file `truth` says how far each thread is: before, after. */
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

int main(void)
{
    limit();
    int fd = open("truth", O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096) != 0)
        return 2;
    truth = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, hammer, (void *)i);
    pthread_join(threads[0], NULL);
    return 3;
}
