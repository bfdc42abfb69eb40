/*
 * The on-chip copies: aclrtMemcpyAsyncWithOffset (the addresses stand in cells
 * on the device) and the descriptor calls (everything stands on the device).
 */
#define _GNU_SOURCE
#include "conform.h"

enum { H2D = 1, D2D = 3, INNER = 6, INTER = 7 };
static const size_t FOUR_GIB = 4ULL << 30, FAR = 0xFFFFFFFFFFFFULL;

static void **dst_cell;
static const void **src_cell;
static uint8_t *desc;

static aclError offset_copy(void **dst, size_t room, size_t dst_offset, const void **src, size_t count,
                            size_t src_offset, int kind, aclrtStream on)
{
    return aclrtMemcpyAsyncWithOffset(dst, room, dst_offset, src, count, src_offset, (aclrtMemcpyKind)kind, on);
}

static void offset_checks(void)
{
    want("offset: nothing to copy, all else wrong", offset_copy(NULL, 0, 9, NULL, 0, 9, 99, no_stream), OK);
    want("offset: kind 3", offset_copy(dst_cell, SIZE, 0, src_cell, 64, 0, D2D, stream), PARAM);
    want("offset: kind 7", offset_copy(dst_cell, SIZE, 0, src_cell, 64, 0, INTER, stream), PARAM);
    want("offset: kind, before stream", offset_copy(dst_cell, SIZE, 0, src_cell, 64, 0, D2D, no_stream), PARAM);
    want("offset: bad stream", offset_copy(dst_cell, SIZE, 0, src_cell, 64, 0, INNER, no_stream), BAD_HANDLE);
    want("offset: bad stream, before null", offset_copy(NULL, SIZE, 0, NULL, 64, 0, INNER, no_stream), BAD_HANDLE);
    want("offset: bad stream, before room", offset_copy(dst_cell, 63, 0, src_cell, 64, 0, INNER, no_stream), BAD_HANDLE);
    want("offset: no dst", offset_copy(NULL, SIZE, 0, src_cell, 64, 0, INNER, stream), PARAM);
    want("offset: no src", offset_copy(dst_cell, SIZE, 0, NULL, 64, 0, INNER, stream), PARAM);
    want("offset: room smaller than count", offset_copy(dst_cell, 63, 0, src_cell, 64, 0, INNER, stream), PARAM);
    want("offset: over 4 GiB", offset_copy(dst_cell, FOUR_GIB + 1, 0, src_cell, FOUR_GIB + 1, 0, INNER, stream), PARAM);
    want("offset: source offset over 48 bits", offset_copy(dst_cell, SIZE, 0, src_cell, 64, FAR + 1, INNER, stream),
         PARAM);
    want("offset: destination offset over 48 bits",
         offset_copy(dst_cell, SIZE_MAX, FAR + 1, src_cell, 64, 0, INNER, stream), PARAM);
    want("offset: destination offset at the end", offset_copy(dst_cell, SIZE, SIZE, src_cell, 64, 0, INNER, stream),
         PARAM);
    want("offset: count over the rest", offset_copy(dst_cell, SIZE, SIZE - 63, src_cell, 64, 0, INNER, stream), PARAM);
    want("offset: foreign stream", offset_copy(dst_cell, SIZE, 0, src_cell, 64, 0, INNER, foreign), FOREIGN_STREAM);
}

static void offset_without_context(void)
{
    want("offset, no context", offset_copy(dst_cell, SIZE, 0, src_cell, 64, 0, INNER, NULL), NO_CONTEXT);
    want("offset, no context: kind is looked at first", offset_copy(dst_cell, SIZE, 0, src_cell, 64, 0, D2D, NULL),
         PARAM);
    want("offset, no context: room is looked at first", offset_copy(dst_cell, 63, 0, src_cell, 64, 0, INNER, NULL),
         PARAM);
    want("offset, no context: offsets are looked at first",
         offset_copy(dst_cell, SIZE, SIZE, src_cell, 64, 0, INNER, NULL), PARAM);
    want("offset, no context: nothing to copy is looked at first", offset_copy(NULL, 0, 0, NULL, 0, 0, 99, NULL), OK);
}

static void offset_data(void)
{
    uint8_t want_bytes[SIZE], got[SIZE];
    put(dev, SIZE, 1);
    put(dev2, SIZE, 2);
    paint(want_bytes, SIZE, 1);
    want("offset: copy", offset_copy(dst_cell, SIZE, 512, src_cell, 1000, 300, INNER, stream), OK);
    MUST(aclrtSynchronizeStream(stream));
    MUST(aclrtMemcpy(got, SIZE, dev2, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    holds("offset: bytes", memcmp(got + 512, want_bytes + 300, 1000) == 0);
    paint(want_bytes, SIZE, 2);
    holds("offset: nothing before and behind",
          memcmp(got, want_bytes, 512) == 0 && memcmp(got + 1512, want_bytes + 1512, SIZE - 1512) == 0);
    struct gate gate;
    gate_close(&gate, stream);
    want("offset: stream held", offset_copy(dst_cell, SIZE, 0, src_cell, 64, 0, INNER, stream), OK);
    holds("offset: stream held: not yet", has(dev2, 64, 2));
    gate_open(&gate);
    MUST(aclrtSynchronizeStream(stream));
    holds("offset: stream held: bytes then", has(dev2, 64, 1));
    want("offset: up to the last byte", offset_copy(dst_cell, SIZE, SIZE - 64, src_cell, 64, 0, INNER, stream), OK);
    want("offset: default stream", offset_copy(dst_cell, SIZE, 0, src_cell, 64, 0, INNER, NULL), OK);
    MUST(aclrtSynchronizeDevice());
    holds("offset: default stream: bytes", has(dev2, 64, 1));
}

/* ---- Descriptors ---- */

static aclError set(void *where, int kind, void *src, void *dst, size_t count, void *config)
{
    return aclrtSetMemcpyDesc(where, (aclrtMemcpyKind)kind, src, dst, count, config);
}

static aclError go(void *where, int kind, aclrtStream on)
{
    return aclrtMemcpyAsyncWithDesc(where, (aclrtMemcpyKind)kind, on);
}

static void size_checks(void)
{
    size_t size = 5;
    want("desc size: nowhere to put it", aclrtGetMemcpyDescSize((aclrtMemcpyKind)INNER, NULL), BAD);
    want("desc size: nowhere to put it, before kind", aclrtGetMemcpyDescSize((aclrtMemcpyKind)D2D, NULL), BAD);
    want("desc size: kind 8", aclrtGetMemcpyDescSize((aclrtMemcpyKind)8, &size), BAD);
    want("desc size: kind -1", aclrtGetMemcpyDescSize((aclrtMemcpyKind)-1, &size), BAD);
    want("desc size: kind 3", aclrtGetMemcpyDescSize((aclrtMemcpyKind)D2D, &size), UNSUPPORTED);
    want("desc size: kind 7", aclrtGetMemcpyDescSize((aclrtMemcpyKind)INTER, &size), UNSUPPORTED);
    want("desc size: nothing written on error", (long long)size, 5);
    want("desc size", aclrtGetMemcpyDescSize((aclrtMemcpyKind)INNER, &size), OK);
    want("desc size: value", (long long)size, strcmp(aclrtGetSocName(), "Ascend950") == 0 ? 64 : 32);
}

static void set_checks(void)
{
    int dummy = 0;
    want("set desc: no descriptor", set(NULL, INNER, dev, dev2, 64, NULL), BAD);
    want("set desc: kind 8", set(desc, 8, dev, dev2, 64, NULL), BAD);
    want("set desc: no source", set(desc, INNER, NULL, dev2, 64, NULL), BAD);
    want("set desc: no destination", set(desc, INNER, dev, NULL, 64, NULL), BAD);
    want("set desc: nothing to copy is an error here", set(desc, INNER, dev, dev2, 0, NULL), BAD);
    want("set desc: a configuration", set(desc, INNER, dev, dev2, 64, &dummy), BAD);
    want("set desc: no source, before kind 3", set(desc, D2D, NULL, dev2, 64, NULL), BAD);
    want("set desc: kind 3", set(desc, D2D, dev, dev2, 64, NULL), UNSUPPORTED);
    want("set desc: kind 7", set(desc, INTER, dev, dev2, 64, NULL), UNSUPPORTED);
    want("set desc: kind 3, before 4 GiB", set(desc, D2D, dev, dev2, FOUR_GIB + 1, NULL), UNSUPPORTED);
    want("set desc: over 4 GiB", set(desc, INNER, dev, dev2, FOUR_GIB + 1, NULL), PARAM);
    want("set desc: 4 GiB", set(desc, INNER, dev, dev2, FOUR_GIB, NULL), OK);
    want("set desc: not on 64 bytes", set(desc + 32, INNER, dev, dev2, 64, NULL), PARAM);
    want("set desc: descriptor in pinned memory", set(pin, INNER, dev, dev2, 64, NULL), PARAM);
    want("set desc: source in pinned memory", set(desc, INNER, pin, dev2, 64, NULL), PARAM);
    want("set desc: destination in pinned memory", set(desc, INNER, dev, pin, 64, NULL), PARAM);
    want("set desc: source in pageable memory", set(desc, INNER, page, dev2, 64, NULL), PARAM);

    void *gone = device_memory(SIZE);
    MUST(aclrtFree(gone));
    want("set desc: freed source", set(desc, INNER, gone, dev2, 64, NULL), DRIVER);
    want("set desc: freed source, before descriptor in pinned memory", set(pin, INNER, gone, dev2, 64, NULL), DRIVER);

    MUST(aclrtSetDevice(1));
    void *elsewhere = device_memory(SIZE);
    MUST(aclrtSetCurrentContext(home));
    want("set desc: another device", set(desc, INNER, dev, elsewhere, 64, NULL), PARAM);
}

static void go_checks(void)
{
    want("desc copy: no descriptor", go(NULL, INNER, stream), BAD);
    want("desc copy: no descriptor, before stream", go(NULL, INNER, no_stream), BAD);
    want("desc copy: kind 8", go(desc, 8, stream), BAD);
    want("desc copy: kind 8, before stream", go(desc, 8, no_stream), BAD);
    want("desc copy: no stream", go(desc, INNER, NULL), BAD);
    want("desc copy: no stream, before kind 3", go(desc, D2D, NULL), BAD);
    want("desc copy: bad stream", go(desc, INNER, no_stream), BAD_HANDLE);
    want("desc copy: bad stream, before kind 3", go(desc, D2D, no_stream), BAD_HANDLE);
    want("desc copy: kind 3", go(desc, D2D, stream), UNSUPPORTED);
    want("desc copy: kind 3, before location", go(pin, D2D, stream), UNSUPPORTED);
    want("desc copy: descriptor in pinned memory", go(pin, INNER, stream), PARAM);
    want("desc copy: descriptor in pageable memory", go(page, INNER, stream), PARAM);
    want("desc copy: not on 64 bytes", go(desc + 32, INNER, stream), PARAM);
    want("desc copy: foreign stream", go(desc, INNER, foreign), FOREIGN_STREAM);
}

static void desc_without_context(void)
{
    size_t size = 0;
    want("desc size, no context is needed", aclrtGetMemcpyDescSize((aclrtMemcpyKind)INNER, &size), OK);
    want("set desc, no context", set(desc, INNER, dev, dev2, 64, NULL), NO_CONTEXT);
    want("set desc, no context: locations are looked at first", set(desc, INNER, pin, dev2, 64, NULL), PARAM);
    want("desc copy, no context: stream is looked at first", go(desc, INNER, NULL), BAD);
    want("desc copy, no context", go(desc, INNER, stream), NO_CONTEXT);
}

static void desc_data(void)
{
    put(dev, SIZE, 3);
    put(dev2, SIZE, 4);
    want("set desc", set(desc, INNER, dev, dev2 + 128, 256, NULL), OK);
    want("desc copy", go(desc, INNER, stream), OK);
    MUST(aclrtSynchronizeStream(stream));
    uint8_t before[SIZE], after[SIZE], got[SIZE];
    paint(before, SIZE, 4);
    paint(after, SIZE, 3);
    MUST(aclrtMemcpy(got, SIZE, dev2, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    holds("desc copy: source comes first, then destination", memcmp(got + 128, after, 256) == 0);
    holds("desc copy: nothing before and behind",
          memcmp(got, before, 128) == 0 && memcmp(got + 384, before + 384, SIZE - 384) == 0);

    /* The descriptor is read when the stream comes to it. */
    struct gate gate;
    put(dev, SIZE, 5);
    put(dev2, SIZE, 6);
    MUST(set(desc, INNER, dev, dev2, 128, NULL));
    gate_close(&gate, stream);
    want("desc copy behind a gate", go(desc, INNER, stream), OK);
    want("set desc anew", set(desc, INNER, dev, dev2 + 1024, 128, NULL), OK);
    gate_open(&gate);
    MUST(aclrtSynchronizeStream(stream));
    holds("desc copy: the old place is untouched", has(dev2, 128, 6));
    holds("desc copy: the new place has the bytes", has(dev2 + 1024, 128, 5));

    MUST(set(desc, INNER, dev, dev2, FOUR_GIB, NULL));
    want("desc copy of 4 GiB", go(desc, INNER, stream), OK);
    MUST(aclrtSynchronizeStream(stream));
    holds("desc copy of 4 GiB copies nothing", has(dev2, 128, 6));
}

int main(void)
{
    open_world();
    dst_cell = (void **)device_memory(64);
    src_cell = (const void **)device_memory(64);
    desc = (uint8_t *)device_memory(256);
    desc += -(uintptr_t)desc % 64;
    MUST(aclrtMemcpy((void *)dst_cell, 8, &dev2, 8, ACL_MEMCPY_HOST_TO_DEVICE));
    MUST(aclrtMemcpy((void *)src_cell, 8, &dev, 8, ACL_MEMCPY_HOST_TO_DEVICE));

    offset_checks();
    on_new_thread(offset_without_context);
    offset_data();
    size_checks();
    set_checks();
    go_checks();
    on_new_thread(desc_without_context);
    desc_data();
    return finish();
}
