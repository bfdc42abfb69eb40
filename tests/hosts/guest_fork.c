/* guest_fork HOW LIBRARY: 200 forks x 50 calls. HOW is `warm` (this thread has called before, another one calls all
 * the while) or `cold` (this thread never called, another one opens and closes a library all the while). */
#include "guest_host.h"
#include <dlfcn.h>
#include <pthread.h>

enum { FORKS = 200, CALLS = 50 };

static const char *library;
static volatile int done;
static volatile uint64_t mine;

static void *hammer(void *unused)
{
    for (; !done; mine++)
        copies(1);
    return unused;
}

static void *open_and_close(void *unused)
{
    for (; !done; mine++) {
        void *handle = dlopen(library, RTLD_NOW);
        if (!handle || dlclose(handle) != 0)
            _exit(93);
    }
    return unused;
}

int main(int argc, char **argv)
{
    limit();
    if (argc < 3)
        return 2;
    int warm = strcmp(argv[1], "warm") == 0;
    library = argv[2];
    pthread_t thread;
    if (warm)
        copies(1);
    pthread_create(&thread, NULL, warm ? hammer : open_and_close, NULL);
    while (mine < 10)
        sched_yield();
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            limit();
            copies(CALLS);
            _exit(0);
        }
        reap(child);
    }
    done = 1;
    pthread_join(thread, NULL);
    own(warm ? mine + 1 : 0);
    own(FORKS * CALLS);
    printf("%d children\n", FORKS);
    return 0;
}
