/* keep_calls THREADS CALLS [kill | wait | itself N]: linear copies of several sizes on THREADS threads, batches, and a few calls
 * that break rules. `kill` ends it by SIGKILL, `wait` keeps it until another process does that, `itself N` makes N copies onto themselves besides. */
#include "check_host.h"
#include <pthread.h>
#include <signal.h>

static long calls;

static void *copies(void *unused)
{
    (void)unused;
    MUST(aclrtSetDevice(0));
    for (long i = 0; i < calls; i++)
        MUST(aclrtMemcpy(dev, 1024, pin, (size_t)64 << i % 4, H2D));
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    long threads = atol(argv[1]);
    calls = atol(argv[2]);
    open_world();
    struct batch b = fresh();
    MUST(BATCH(b));
    b.rooms[1] = ITEM - 1;
    printf("%d\n", BATCH(b));
    printf("%d\n", aclrtMemcpy(NULL, 64, pin, 64, H2D));
    MUST(aclrtMemcpyAsync(dev, 128, pin, 64, H2D, stream));
    MUST(aclrtMemset(dev, 64, 7, 64));
    MUST(aclrtSynchronizeStream(stream));
    for (long i = argc > 4 && !strcmp(argv[3], "itself") ? atol(argv[4]) : 0; i > 0; i--)
        MUST(aclrtMemcpy(dev, 64, dev, 64, D2D));
    pthread_t ids[64];
    for (long i = 0; i < threads && i < 64; i++)
        pthread_create(&ids[i], NULL, copies, NULL);
    for (long i = 0; i < threads && i < 64; i++)
        pthread_join(ids[i], NULL);
    if (argc > 3 && !strcmp(argv[3], "wait")) {
        printf("waiting\n");
        fflush(stdout);
        pause();
    }
    fflush(stdout);
    if (argc > 3 && !strcmp(argv[3], "kill"))
        raise(SIGKILL);
    return 0;
}
