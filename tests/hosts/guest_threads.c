/* guest_threads short N [CALLS]: N threads after each other, 3 calls each, or CALLS. guest_threads alive N: N threads at once, 100 calls
 * each, and none ends before all have called. */
#include "guest_host.h"
#include <pthread.h>

static pthread_barrier_t all;
static int each = 3;

static void *brief(void *unused)
{
    copies(each);
    return unused;
}

static void *together(void *unused)
{
    copies(50);
    pthread_barrier_wait(&all);
    copies(50);
    pthread_barrier_wait(&all);
    return unused;
}

int main(int argc, char **argv)
{
    limit();
    if (argc < 3)
        return 2;
    int alive = !strcmp(argv[1], "alive");
    int n = atoi(argv[2]);
    if (argc > 3)
        each = atoi(argv[3]);
    pthread_t *threads = calloc((size_t)n, sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    copies(1);
    pthread_barrier_init(&all, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) {
        if (pthread_create(&threads[i], &small, alive ? together : brief, NULL) != 0)
            return 3;
        if (!alive)
            pthread_join(threads[i], NULL);
    }
    for (int i = 0; alive && i < n; i++)
        pthread_join(threads[i], NULL);
    own((uint64_t)n * (uint64_t)(alive ? 100 : each) + 1);
    printf("%d threads\n", n);
    return 0;
}
