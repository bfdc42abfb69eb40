/* A paged KV cache: see kv.h. */
#include "kv.h"

#include <string.h>

enum { MOST = 64 }; /* blocks of one batch */

static uint8_t *on_device(const struct kv *kv, size_t block)
{
    return kv->device + block * kv->size;
}

static uint8_t *at_home(const struct kv *kv, size_t block)
{
    return kv->home + block * kv->size;
}

aclError kv_open(struct kv *kv, size_t blocks, size_t size)
{
    size_t table = (blocks + 63) / 64 * 64; /* the blocks behind it stay aligned */
    void *device = NULL, *pinned = NULL;
    aclError code = aclrtMalloc(&device, blocks * size, ACL_MEM_MALLOC_HUGE_FIRST);
    if (code != ACL_SUCCESS)
        return code;
    code = aclrtMallocHost(&pinned, table + blocks * size);
    if (code != ACL_SUCCESS) {
        aclrtFree(device);
        return code;
    }
    kv->blocks = blocks;
    kv->size = size;
    kv->device = (uint8_t *)device;
    kv->table = (uint8_t *)pinned;
    kv->home = kv->table + table;
    kv->has_batches = 1;
    memset(kv->table, 0, table);
    code = aclrtCreateStream(&kv->stream);
    if (code != ACL_SUCCESS) {
        aclrtFreeHost(pinned);
        aclrtFree(device);
    }
    return code;
}

aclError kv_close(struct kv *kv)
{
    aclError waited = kv_wait(kv), destroyed = aclrtDestroyStream(kv->stream);
    aclError unpinned = aclrtFreeHost(kv->table), freed = aclrtFree(kv->device);
    return waited ? waited : destroyed ? destroyed : unpinned ? unpinned : freed;
}

aclError kv_upload(struct kv *kv, const size_t *which, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t *to = on_device(kv, which[i]), *from = at_home(kv, which[i]);
        aclError code = aclrtMemcpyAsync(to, kv->size, from, kv->size, ACL_MEMCPY_HOST_TO_DEVICE, kv->stream);
        if (code != ACL_SUCCESS)
            return code;
        kv->table[which[i]] = 1;
    }
    return ACL_SUCCESS;
}

static aclError offload_batch(struct kv *kv, const size_t *which, size_t count)
{
    void *dsts[MOST], *srcs[MOST];
    size_t sizes[MOST], first = 0, failed = 0;
    aclrtMemcpyBatchAttr down;
    memset(&down, 0, sizeof down); /* the reserved bytes must be zero */
    down.dstLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    down.srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    for (size_t i = 0; i < count; i++) {
        dsts[i] = at_home(kv, which[i]);
        srcs[i] = on_device(kv, which[i]);
        sizes[i] = kv->size;
    }
    return aclrtMemcpyBatchAsync(dsts, sizes, srcs, sizes, count, &down, &first, 1, &failed, kv->stream);
}

static aclError offload_one(struct kv *kv, size_t block)
{
    return aclrtMemcpyAsync(at_home(kv, block), kv->size, on_device(kv, block), kv->size, ACL_MEMCPY_DEVICE_TO_HOST,
                            kv->stream);
}

static aclError offload_some(struct kv *kv, const size_t *which, size_t count)
{
    aclError code = kv->has_batches ? offload_batch(kv, which, count) : ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
    if (code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT) {
        kv->has_batches = 0; /* not asked again */
        code = ACL_SUCCESS;
        for (size_t i = 0; i < count && code == ACL_SUCCESS; i++)
            code = offload_one(kv, which[i]);
    }
    for (size_t i = 0; i < count && code == ACL_SUCCESS; i++)
        kv->table[which[i]] = 0;
    return code;
}

aclError kv_offload(struct kv *kv, const size_t *which, size_t count)
{
    aclError code = ACL_SUCCESS;
    for (size_t at = 0; at < count && code == ACL_SUCCESS; at += MOST)
        code = offload_some(kv, which + at, count - at < MOST ? count - at : MOST);
    return code;
}

aclError kv_headers(struct kv *kv, uint8_t *headers)
{
    return aclrtMemcpy2dAsync(headers, KV_HEADER, kv->device, kv->size, KV_HEADER, kv->blocks,
                              ACL_MEMCPY_DEVICE_TO_HOST, kv->stream);
}

aclError kv_wait(struct kv *kv)
{
    return aclrtSynchronizeStream(kv->stream);
}
