/* A plugin whose constructor waits for a thread that copies: all that while dlopen holds the loader's lock. */
#include "acl/acl.h"
#include <pthread.h>
#include <stdio.h>

static void *worker(void *unused)
{
    (void)unused;
    printf("copy %d\n", aclrtMemcpy(NULL, 0, NULL, 0, ACL_MEMCPY_DEFAULT));
    return NULL;
}

__attribute__((constructor)) static void start(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    pthread_join(thread, NULL);
}

int plugin_copies(void)
{
    return aclrtMemcpy(NULL, 0, NULL, 0, ACL_MEMCPY_DEFAULT);
}
