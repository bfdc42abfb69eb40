/* A plugin that brings the vendor's library, calls it through what the loader has bound, and hands its function to the
 * program without being asked. With COPIES its constructor waits for a thread that makes so many. */
#include "acl/acl.h"
#include <pthread.h>
#include <stdio.h>

extern int (*plugin_copies)(int times);

static int copies(int times)
{
    int failed = 0;
    for (int i = 0; i < times; i++)
        failed |= aclrtMemcpyAsync(NULL, 0, NULL, 0, ACL_MEMCPY_DEFAULT, NULL);
    return failed;
}

#ifdef COPIES
static void *worker(void *unused)
{
    printf("copies of a thread: %d\n", copies(COPIES));
    return unused;
}
#endif

__attribute__((constructor)) static void start(void)
{
    plugin_copies = copies;
#ifdef COPIES
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    pthread_join(thread, NULL);
#endif
}
