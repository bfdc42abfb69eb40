/*
 * The library under test: a paged KV cache. Its blocks lie on the device, each
 * has a home in pinned host memory, and the host keeps a table of which are
 * resident. Nothing here knows that it is tested.
 */
#ifndef KV_H
#define KV_H

#include <stddef.h>
#include <stdint.h>

#include "acl/acl.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KV_HEADER = 64 }; /* bytes at the begin of each block that describe it */

struct kv {
    size_t blocks, size;  /* how many, and the bytes of each */
    uint8_t *device;      /* the blocks on the device */
    uint8_t *table;       /* pinned: one byte a block, 1 if it is resident */
    uint8_t *home;        /* pinned, behind the table: the blocks of the host */
    aclrtStream stream;
    int has_batches; /* cleared by the first 207000 */
};

/* Makes a cache on the current device. All functions return 0 or the vendor's code. */
aclError kv_open(struct kv *kv, size_t blocks, size_t size);
aclError kv_close(struct kv *kv);

/* Brings these blocks to the device, one copy each. */
aclError kv_upload(struct kv *kv, const size_t *which, size_t count);

/* Sends these blocks home: one batch, or one copy each where the product has no batches. */
aclError kv_offload(struct kv *kv, const size_t *which, size_t count);

/* Reads the headers of all blocks on the device, one after the other, into pinned memory. */
aclError kv_headers(struct kv *kv, uint8_t *headers);

/* Waits until all of that is done. */
aclError kv_wait(struct kv *kv);

#ifdef __cplusplus
}
#endif

#endif
