/*
 * Many small copies in one call. Attributes say where the items lie: attrs[k]
 * holds from item attrsIndexes[k] up to the next entry. A batch goes one way,
 * host to device or device to host. Only some products have batches; the others
 * answer 207000, and a program that wants to run everywhere copies one by one.
 *
 *   cc -std=c99 -Iinclude batch.c -lascendcl && ./a.out
 */
#include "example.h"

enum { ITEMS = 8, PINNED = 5, SIZE = 2048 };

struct items {
    void *dsts[ITEMS];
    void *srcs[ITEMS];
    size_t rooms[ITEMS];
    size_t sizes[ITEMS];
};

static aclrtMemcpyBatchAttr one_way(aclrtMemLocationType to, aclrtMemLocationType from)
{
    aclrtMemcpyBatchAttr attr;
    memset(&attr, 0, sizeof attr); /* the reserved bytes must be zero */
    attr.dstLoc.type = to;         /* id 0: device 0, and of no meaning for the host */
    attr.srcLoc.type = from;
    return attr;
}

/* Copies all items with one call if the product can, else one by one. Returns
 * the number of calls that it took. */
static int copy_all(struct items *items, aclrtMemcpyBatchAttr *attrs, size_t *first, size_t ranges,
                    aclrtMemcpyKind kind, aclrtStream stream)
{
    /* Some errors leave failIndex as it was: start from "no item". */
    size_t fail_index = SIZE_MAX;
    aclError code =
        stream ? aclrtMemcpyBatchAsync(items->dsts, items->rooms, items->srcs, items->sizes, ITEMS, attrs, first,
                                       ranges, &fail_index, stream)
               : aclrtMemcpyBatch(items->dsts, items->rooms, items->srcs, items->sizes, ITEMS, attrs, first, ranges,
                                  &fail_index);
    if (code == ACL_SUCCESS)
        return 1;
    if (code != ACL_ERROR_RT_FEATURE_NOT_SUPPORT) {
        fprintf(stderr, "batch: code %d at item %zu\n", code, fail_index);
        exit(1);
    }
    for (int i = 0; i < ITEMS; i++) {
        if (stream)
            CHECK(aclrtMemcpyAsync(items->dsts[i], items->rooms[i], items->srcs[i], items->sizes[i], kind, stream));
        else
            CHECK(aclrtMemcpy(items->dsts[i], items->rooms[i], items->srcs[i], items->sizes[i], kind));
    }
    return ITEMS;
}

int main(void)
{
    example_open();

    /* The host side of items 0-4 is pinned, of items 5-7 ordinary memory. Both
     * are called HOST; two ranges because a real program would mix sources. */
    uint8_t *device = device_alloc(ITEMS * SIZE);
    uint8_t *pinned = pinned_alloc(PINNED * SIZE);
    uint8_t *pageable = pageable_alloc((ITEMS - PINNED) * SIZE);
    uint8_t *host[ITEMS];
    for (int i = 0; i < ITEMS; i++) {
        host[i] = i < PINNED ? pinned + i * SIZE : pageable + (i - PINNED) * SIZE;
        fill(host[i], SIZE, (unsigned)i);
    }
    size_t first[2] = {0, PINNED};

    struct items items;
    aclrtMemcpyBatchAttr up[2], down[2];
    for (int k = 0; k < 2; k++) {
        up[k] = one_way(ACL_MEM_LOCATION_TYPE_DEVICE, ACL_MEM_LOCATION_TYPE_HOST);
        down[k] = one_way(ACL_MEM_LOCATION_TYPE_HOST, ACL_MEM_LOCATION_TYPE_DEVICE);
    }

    for (int i = 0; i < ITEMS; i++) {
        items.dsts[i] = device + i * SIZE;
        items.srcs[i] = host[i];
        items.rooms[i] = items.sizes[i] = SIZE;
    }
    int calls = copy_all(&items, up, first, 2, ACL_MEMCPY_HOST_TO_DEVICE, NULL);
    printf("batch: %d items up, calls needed: %d\n", ITEMS, calls);

    /* Back in reverse order, on a stream. */
    aclrtStream stream;
    CHECK(aclrtCreateStream(&stream));
    for (int i = 0; i < ITEMS; i++) {
        items.dsts[i] = host[i];
        items.srcs[i] = device + (ITEMS - 1 - i) * SIZE;
    }
    memset(pinned, 0, PINNED * SIZE);
    memset(pageable, 0, (ITEMS - PINNED) * SIZE);
    calls = copy_all(&items, down, first, 2, ACL_MEMCPY_DEVICE_TO_HOST, stream);
    CHECK(aclrtSynchronizeStream(stream));
    for (int i = 0; i < ITEMS; i++)
        EXPECT(holds(host[i], SIZE, (unsigned)(ITEMS - 1 - i)), "the items in reverse order");
    printf("batch: %d items down in reverse order, calls needed: %d\n", ITEMS, calls);

    CHECK(aclrtDestroyStream(stream));
    free(pageable);
    CHECK(aclrtFreeHost(pinned));
    CHECK(aclrtFree(device));
    example_close();
    return 0;
}
