/* What the check_* programs share: a device with memory and a stream, and batches to be spoiled. */
#ifndef CHECK_HOST_H
#define CHECK_HOST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../sim/conform.h"

enum { ITEMS = 3, ITEM = 256, MANY = 4097 };
static const size_t MARK = 777; /* what stands in failIndex before a call */

static const aclrtMemcpyKind H2H = ACL_MEMCPY_HOST_TO_HOST, H2D = ACL_MEMCPY_HOST_TO_DEVICE,
                             D2H = ACL_MEMCPY_DEVICE_TO_HOST, D2D = ACL_MEMCPY_DEVICE_TO_DEVICE,
                             INNER = ACL_MEMCPY_INNER_DEVICE_TO_DEVICE;

/* The arguments of a batch. */
struct batch {
    void **dsts, **srcs;
    size_t *rooms, *sizes, *first;
    size_t items, ranges, *fail;
    aclrtMemcpyBatchAttr *attrs;
};

static void *batch_dsts[MANY], *batch_srcs[MANY];
static size_t batch_rooms[MANY], batch_sizes[MANY], batch_first[8], batch_fail;
static aclrtMemcpyBatchAttr batch_attrs[8];

/* Three items from pinned memory to the device, with nothing wrong. */
static inline struct batch fresh(void)
{
    memset(batch_attrs, 0, sizeof batch_attrs);
    memset(batch_first, 0, sizeof batch_first);
    for (int i = 0; i < 8; i++)
        batch_attrs[i].dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    for (int i = 0; i < MANY; i++) {
        batch_dsts[i] = dev + i % ITEMS * ITEM;
        batch_srcs[i] = pin + i % ITEMS * ITEM;
        batch_rooms[i] = batch_sizes[i] = ITEM;
    }
    batch_fail = MARK;
    struct batch batch = {batch_dsts, batch_srcs, batch_rooms, batch_sizes, batch_first,
                          ITEMS,      1,          &batch_fail, batch_attrs};
    return batch;
}

/* In place, so that each has a call site of its own. */
#define ARGUMENTS(b) (b).dsts, (b).rooms, (b).srcs, (b).sizes, (b).items, (b).attrs, (b).first, (b).ranges
#define BATCH(b) aclrtMemcpyBatch(ARGUMENTS(b), (b).fail)
#define BATCH_V2(b) aclrtMemcpyBatchV2(ARGUMENTS(b))
#define BATCH_ASYNC(b, on) aclrtMemcpyBatchAsync(ARGUMENTS(b), (b).fail, on)
#define BATCH_ASYNC_V2(b, on) aclrtMemcpyBatchAsyncV2(ARGUMENTS(b), on)

/* A copy with nothing wrong. */
static inline int good_copy(void)
{
    return aclrtMemcpy(dev, 64, pin, 64, H2D);
}

/* How often the vendor itself was entered. */
static inline unsigned long long entered(const char *function)
{
    return (unsigned long long)ascendclSimCalls(function);
}

#endif
