/* Waits for a byte on its standard input, then copies from each of its threads, and says so; until the input ends.
 * Every third copy of a thread is on a stream; every fifth is too large for its destination. The first thread has copied
 * before there is a second, so that no thread has to wait for the ring file; and a run that hangs is killed. */
#include "acl/acl.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SIZE = 4096, COPIES = 30 };

static aclrtContext context;
static sem_t copied;

static void *copies(void *unused)
{
    void *device = NULL, *host = NULL;
    aclrtStream stream = NULL;
    aclrtSetCurrentContext(context);
    aclrtCreateStream(&stream);
    aclrtMalloc(&device, SIZE, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMallocHost(&host, SIZE);
    for (int i = 1; i <= COPIES; i++) {
        size_t size = (size_t)(64 * i), room = i % 5 == 0 ? size - 1 : SIZE;
        if (i % 3 == 0) {
            aclrtMemcpyAsync(host, room, device, size, ACL_MEMCPY_DEVICE_TO_HOST, stream);
        } else {
            aclrtMemcpy(device, room, host, size, ACL_MEMCPY_HOST_TO_DEVICE);
        }
        if (i == 1) {
            sem_post(&copied);
        }
    }
    aclrtSynchronizeStream(stream);
    aclrtDestroyStream(stream);
    aclrtFree(device);
    aclrtFreeHost(host);
    return unused;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    char byte;
    alarm(600);
    sem_init(&copied, 0, 0);
    aclInit(NULL);
    aclrtSetDevice(0);
    aclrtGetCurrentContext(&context);
    while (read(0, &byte, 1) == 1) {
        pthread_t all[16];
        for (int i = 0; i < threads; i++) {
            pthread_create(&all[i], NULL, copies, NULL);
            if (i == 0) {
                sem_wait(&copied);
            }
        }
        for (int i = 0; i < threads; i++) {
            pthread_join(all[i], NULL);
        }
        if (write(1, &byte, 1) != 1) {
            return 1;
        }
    }
    return 0;
}
