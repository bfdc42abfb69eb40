/* What the harness_* programs share: a device with memory and a stream, and an end to every hang. */
#ifndef HARNESS_HOST_H
#define HARNESS_HOST_H

#include "aclshim.h"
#include "guest_host.h"
#include <inttypes.h>
#include <pthread.h>

enum { ROOM = 1 << 20 };
static const aclrtMemcpyKind H2D = ACL_MEMCPY_HOST_TO_DEVICE, D2H = ACL_MEMCPY_DEVICE_TO_HOST;
static aclrtContext context;
static char *device, *pinned;
static aclrtStream stream, other;

static inline void begin(void)
{
    limit();
    aclInit(NULL);
    aclrtSetDevice(0);
    aclrtGetCurrentContext(&context);
    aclrtMalloc((void **)&device, ROOM, ACL_MEM_MALLOC_HUGE_FIRST);
    aclrtMallocHost((void **)&pinned, ROOM);
    aclrtCreateStream(&stream);
    aclrtCreateStream(&other);
}

static inline int up(size_t size)
{
    return aclrtMemcpy(device, ROOM, pinned, size, H2D);
}

static inline int up_on(aclrtStream on, size_t size)
{
    return aclrtMemcpyAsync(device, size, pinned, size, H2D, on);
}

/* A batch of this many items from the host to the device. */
static inline int batch(size_t items, size_t size)
{
    void *dsts[16], *srcs[16];
    size_t rooms[16], sizes[16], first = 0, failed = 0;
    aclrtMemcpyBatchAttr attr;
    memset(&attr, 0, sizeof attr);
    attr.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    for (size_t i = 0; i < items; i++) {
        dsts[i] = device + i * size;
        srcs[i] = pinned + i * size;
        rooms[i] = 2 * size;
        sizes[i] = size;
    }
    return aclrtMemcpyBatch(dsts, rooms, srcs, sizes, items, &attr, &first, 1, &failed);
}

static inline void say(const char *what, int64_t value)
{
    printf("%s %" PRId64 "\n", what, value);
}

static inline pthread_t start(void *(*work)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0)
        _exit(93);
    return thread;
}

static inline void run(void *(*work)(void *))
{
    pthread_join(start(work), NULL);
}

#endif
