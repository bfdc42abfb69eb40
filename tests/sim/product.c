/*
 * What depends on the product: run once for each ASCENDCL_SIM_SOC. The table is
 * the vendor's feature lists; a product that lacks a function answers 207000
 * (the word set alone answers 0 and sets nothing).
 */
#define _GNU_SOURCE
#include "conform.h"

enum { INNER = 6 };

static const struct product {
    const char *name;
    int batch, offset, desc, words;
    size_t desc_size;
} products[] = {
    {"Ascend910B1", 1, 1, 1, 1, 32},  {"Ascend910_9391", 1, 1, 1, 1, 32}, {"Ascend950", 1, 1, 1, 1, 64},
    {"Ascend310P3", 0, 0, 0, 0, 0},   {"Ascend310B1", 0, 0, 1, 0, 32},    {"Ascend910A", 0, 1, 0, 0, 0},
};

static void *dsts[2], *srcs[2];
static size_t sizes[2] = {64, 64}, rooms[2] = {64, 64}, first[1] = {0}, failed;
static aclrtMemcpyBatchAttr attr;

static aclError batch(int form, aclrtStream on)
{
    return form == 0   ? aclrtMemcpyBatch(dsts, rooms, srcs, sizes, 2, &attr, first, 1, &failed)
           : form == 1 ? aclrtMemcpyBatchV2(dsts, rooms, srcs, sizes, 2, &attr, first, 1)
           : form == 2 ? aclrtMemcpyBatchAsync(dsts, rooms, srcs, sizes, 2, &attr, first, 1, &failed, on)
                       : aclrtMemcpyBatchAsyncV2(dsts, rooms, srcs, sizes, 2, &attr, first, 1, on);
}

static void batches(const struct product *p)
{
    for (int form = 0; form < 4; form++) {
        static const char *const names[] = {"batch", "batch V2", "batch async", "batch async V2"};
        char name[128];
        for (int i = 0; i < 2; i++) {
            dsts[i] = dev + i * 64;
            srcs[i] = pin + i * 64;
        }
        memset(&attr, 0, sizeof attr);
        attr.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
        put(dev, SIZE, 1);
        paint(pin, SIZE, 2);
        failed = 777;
        want(names[form], batch(form, stream), p->batch ? OK : UNSUPPORTED);
        MUST(aclrtSynchronizeStream(stream));
        snprintf(name, sizeof name, "%s: bytes", names[form]);
        holds(name, has(dev, 128, p->batch ? 2 : 1));
        if (form % 2 == 0) {
            snprintf(name, sizeof name, "%s: failIndex", names[form]);
            want(name, (long long)failed, p->batch ? (long long)SIZE_MAX : 777);
        }
        if (p->batch)
            continue;
        /* The upper layer's checks come before the product, stream and ranges after it. */
        rooms[0] = 63;
        snprintf(name, sizeof name, "%s: room is looked at first", names[form]);
        want(name, batch(form, stream), BAD);
        rooms[0] = 64;
        attr.rsv[3] = 1;
        snprintf(name, sizeof name, "%s: reserved bytes are looked at first", names[form]);
        want(name, batch(form, stream), BAD);
        attr.rsv[3] = 0;
        first[0] = 1;
        snprintf(name, sizeof name, "%s: before stream and ranges", names[form]);
        want(name, batch(form, no_stream), UNSUPPORTED);
        first[0] = 0;
        sizes[0] = sizes[1] = 0;
        snprintf(name, sizeof name, "%s: all sizes zero is looked at first", names[form]);
        want(name, batch(form, no_stream), OK);
        sizes[0] = sizes[1] = 64;
    }
}

static void offsets(const struct product *p)
{
    void **to = (void **)device_memory(64);
    const void **from = (const void **)device_memory(64);
    MUST(aclrtMemcpy((void *)to, 8, &dev2, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    MUST(aclrtMemcpy((void *)from, 8, &dev, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    put(dev, SIZE, 3);
    put(dev2, SIZE, 4);
    want("offset", aclrtMemcpyAsyncWithOffset(to, SIZE, 0, from, 64, 0, (aclrtMemcpyKind)INNER, stream),
         p->offset ? OK : UNSUPPORTED);
    MUST(aclrtSynchronizeStream(stream));
    holds("offset: bytes", has(dev2, 64, p->offset ? 3 : 4));
    want("offset: kind is looked at first",
         aclrtMemcpyAsyncWithOffset(to, SIZE, 0, from, 64, 0, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), PARAM);
    if (!p->offset)
        want("offset: product comes before stream",
             aclrtMemcpyAsyncWithOffset(NULL, SIZE, 0, from, 64, 0, (aclrtMemcpyKind)INNER, no_stream), UNSUPPORTED);
}

static void descriptors(const struct product *p)
{
    int code = p->desc ? OK : UNSUPPORTED;
    size_t size = 7;
    uint8_t *desc = (uint8_t *)device_memory(256);
    desc += -(uintptr_t)desc % 64;
    want("desc size", aclrtGetMemcpyDescSize((aclrtMemcpyKind)INNER, &size), code);
    want("desc size: value", (long long)size, p->desc ? (long long)p->desc_size : 7);
    want("desc size: null is looked at first", aclrtGetMemcpyDescSize((aclrtMemcpyKind)INNER, NULL), BAD);
    put(dev, SIZE, 5);
    put(dev2, SIZE, 6);
    want("set desc", aclrtSetMemcpyDesc(desc, (aclrtMemcpyKind)INNER, dev, dev2, 64, NULL), code);
    want("set desc: nothing to copy is looked at first", aclrtSetMemcpyDesc(desc, (aclrtMemcpyKind)INNER, dev, dev2, 0, NULL),
         BAD);
    want("desc copy", aclrtMemcpyAsyncWithDesc(desc, (aclrtMemcpyKind)INNER, stream), code);
    want("desc copy: no stream is looked at first", aclrtMemcpyAsyncWithDesc(desc, (aclrtMemcpyKind)INNER, NULL), BAD);
    if (!p->desc)
        want("desc copy: product comes before stream",
             aclrtMemcpyAsyncWithDesc(desc, (aclrtMemcpyKind)INNER, no_stream), UNSUPPORTED);
    MUST(aclrtSynchronizeStream(stream));
    holds("desc copy: bytes", has(dev2, 64, p->desc ? 5 : 6));
}

static void words(const struct product *p)
{
    uint32_t got = 0;
    MUST(aclrtMemset(dev, SIZE, 0, SIZE));
    want("set words", aclrtMemsetD32(dev, SIZE, 0x01020304, 4), OK);
    MUST(aclrtMemcpy(&got, 4, dev, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    want("set words: value", got, p->words ? 0x01020304 : 0);
    MUST(aclrtMemset(dev, SIZE, 0, SIZE));
    want("set words async", aclrtMemsetD32Async(dev, SIZE, 0x05060708, 4, stream), OK);
    MUST(aclrtSynchronizeStream(stream));
    MUST(aclrtMemcpy(&got, 4, dev, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    want("set words async: value", got, p->words ? 0x05060708 : 0);
}

/* Every product has these. */
static void common(void)
{
    paint(pin, SIZE, 9);
    memset(pin2, 0, SIZE);
    want("memcpy", aclrtMemcpy(dev, SIZE, pin, SIZE, ACL_MEMCPY_HOST_TO_DEVICE), OK);
    want("async", aclrtMemcpyAsync(dev2, SIZE, dev, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), OK);
    want("condition", aclrtMemcpyAsyncWithCondition(pin2, SIZE, dev2, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, stream), OK);
    MUST(aclrtSynchronizeStream(stream));
    holds("bytes", painted(pin2, SIZE, 9));
    want("2d", aclrtMemcpy2d(dev, 64, pin, 64, 64, 4, ACL_MEMCPY_HOST_TO_DEVICE), OK);
    want("2d async", aclrtMemcpy2dAsync(dev, 64, pin, 64, 64, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream), OK);
    want("set", aclrtMemset(dev, SIZE, 1, SIZE), OK);
    want("set async", aclrtMemsetAsync(dev, SIZE, 1, SIZE, stream), OK);
    want("host to host on a stream", aclrtMemcpyAsync(pin2, SIZE, pin, SIZE, ACL_MEMCPY_HOST_TO_HOST, stream),
         UNSUPPORTED);
    MUST(aclrtSynchronizeStream(stream));
}

int main(void)
{
    const char *soc = getenv("ASCENDCL_SIM_SOC");
    const struct product *product = NULL;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (strcmp(products[i].name, soc ? soc : "Ascend910B1") == 0)
            product = &products[i];
    if (product == NULL) {
        printf("FAIL no such product in the table: %s\n", soc);
        return 1;
    }
    open_world();
    holds("name", strcmp(aclrtGetSocName(), product->name) == 0);
    common();
    batches(product);
    offsets(product);
    descriptors(product);
    words(product);
    return finish();
}
