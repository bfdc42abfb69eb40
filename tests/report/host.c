/* host THREADS ROUNDS: copies of many sizes in both directions from several threads, each on a stream of its own, and a
 * few calls that break a rule. It lasts long enough for the pace of the clock to be known. The first thread has copied
 * before there is a second, so that no thread has to wait for the ring file. */
#define _GNU_SOURCE
#include <acl/acl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROOM = 1 << 20 };
static int rounds;
static sem_t copied;

static void must(int code, const char *what)
{
    if (code == 0)
        return;
    fprintf(stderr, "%s: %d\n", what, code);
    exit(1);
}
#define MUST(call) must(call, #call)

static void *work(void *argument)
{
    long number = (long)argument;
    aclrtStream stream;
    void *dev, *pin;
    MUST(aclrtSetDevice(0));
    MUST(aclrtCreateStream(&stream));
    MUST(aclrtMalloc(&dev, 2 * ROOM, ACL_MEM_MALLOC_HUGE_FIRST));
    MUST(aclrtMallocHost(&pin, ROOM));
    char *far = (char *)dev + ROOM;
    for (int round = 0; round < rounds; round++) {
        size_t size = (size_t)64 << (round * 3 + number) % 14;
        MUST(aclrtMemcpy(dev, ROOM, pin, size, ACL_MEMCPY_HOST_TO_DEVICE));
        if (round == 0)
            sem_post(&copied);
        MUST(aclrtMemcpyAsync(far, ROOM, dev, size, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
        MUST(aclrtMemcpyAsync(pin, ROOM, far, size, ACL_MEMCPY_DEVICE_TO_HOST, stream));
        MUST(aclrtMemsetAsync(dev, ROOM, 0, size, stream));
        if (round % 16 == 3)
            aclrtMemcpy(dev, size - 1, pin, size, ACL_MEMCPY_HOST_TO_DEVICE);
        if (round % 16 == 7)
            aclrtMemcpyAsync((char *)dev + 1, 64, far, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, stream);
        if (round % 16 == 11)
            aclrtMemcpy(dev, ROOM, NULL, size, ACL_MEMCPY_HOST_TO_DEVICE);
        if (round % 16 == 15)
            MUST(aclrtSynchronizeStream(stream));
    }
    usleep(150000);
    MUST(aclrtMemcpy(dev, ROOM, pin, ROOM, ACL_MEMCPY_HOST_TO_DEVICE));
    MUST(aclrtSynchronizeStream(stream));
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    rounds = argc > 2 ? atoi(argv[2]) : 1;
    pthread_t all[64];
    MUST(aclInit(NULL));
    sem_init(&copied, 0, 0);
    for (long i = 0; i < threads && i < 64; i++) {
        pthread_create(&all[i], NULL, work, (void *)i);
        if (i == 0 && rounds > 0)
            sem_wait(&copied);
    }
    for (int i = 0; i < threads && i < 64; i++)
        pthread_join(all[i], NULL);
    return 0;
}
