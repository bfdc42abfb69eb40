/* A thread with a cancellation pending makes its first copy: the copy is no cancellation point of its own. */
#include "acl/acl.h"
#include <pthread.h>
#include <stdio.h>

static pthread_barrier_t cancelled;
static int copied;

static void *worker(void *unused)
{
    (void)unused;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_barrier_wait(&cancelled);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    copied = aclrtMemcpy(NULL, 0, NULL, 0, ACL_MEMCPY_DEFAULT) == 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return &copied;
}

int main(void)
{
    pthread_t thread;
    void *result = NULL;
    pthread_barrier_init(&cancelled, NULL, 2);
    pthread_create(&thread, NULL, worker, NULL);
    pthread_cancel(thread);
    pthread_barrier_wait(&cancelled);
    pthread_join(thread, &result);
    printf("copied %d, ended %s\n", copied, result == PTHREAD_CANCELED ? "cancelled" : "by itself");
    return 0;
}
