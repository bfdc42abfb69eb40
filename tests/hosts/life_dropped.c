/* life_dropped: ten copies on each of three threads; a fork child gives up its rights, where it has any, and then writes
 * zeros over every ring that it still has mapped, and frees its pages. The threads copy ten times more. */
#include "guest_host.h"
#include <pthread.h>
#include <sys/mman.h>

static pthread_barrier_t all, done;

static void *work(void *unused)
{
    copies(10);
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&done);
    copies(10);
    return unused;
}

static void spoil(void)
{
    char line[4096];
    unsigned long from, to;
    char rights[8];
    FILE *maps = fopen("/proc/self/maps", "r");
    if (!maps)
        _exit(3);
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        _exit(4);
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "/aclshim-") && strstr(line, ".ring") && sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 &&
            rights[1] == 'w') {
            memset((void *)from, 0, to - from);
            madvise((void *)from, to - from, MADV_REMOVE);
        }
    _exit(0);
}

int main(void)
{
    limit();
    pthread_t threads[3];
    pthread_barrier_init(&all, NULL, 4);
    pthread_barrier_init(&done, NULL, 4);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    pthread_barrier_wait(&all);
    pid_t child = fork();
    if (child == 0)
        spoil();
    reap(child);
    pthread_barrier_wait(&done);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("done\n");
    return 0;
}
