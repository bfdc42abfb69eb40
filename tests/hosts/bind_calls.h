/*
 * Every function, each called exactly once with arguments that the default
 * product accepts. What differs from host to host is only how the functions
 * were found: a host fills `struct calls`, or defines BIND_DIRECT and calls
 * them by name through its procedure linkage table.
 *
 * Prints one line a function: its name, its code, how often the vendor's
 * library was entered, and how many bytes it was asked to move or set.
 */
#ifndef BIND_CALLS_H
#define BIND_CALLS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "acl/ascendcl_sim.h"
#include "functions.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* the vendor's header marks some */

/* What has to be there before anything can be copied. */
#define EACH_TOOL(X)                                                                                                   \
    X(aclInit)                                                                                                         \
    X(aclrtSetDevice)                                                                                                  \
    X(aclrtCreateStream)                                                                                               \
    X(aclrtSynchronizeStream)                                                                                          \
    X(aclrtMalloc)                                                                                                     \
    X(aclrtMallocHost)                                                                                                 \
    X(ascendclSimRegisterSymbol)                                                                                       \
    X(ascendclSimCalls)

#define POINTER(name, ...) __typeof__(name) *to_##name;
struct calls {
    EACH_FUNCTION(POINTER)
};
struct tools {
    EACH_TOOL(POINTER)
};
#undef POINTER

/* For initialisers: the addresses as the linker binds them. */
#define ADDRESS(name, ...) &name,

static inline void *must(void *found, const char *what)
{
    if (found == NULL) {
        fprintf(stderr, "%s: %s\n", what, dlerror());
        exit(2);
    }
    return found;
}

#define LOOK_UP(name, ...) *(void **)&filled.to_##name = must(dlsym(handle, #name), #name);
static inline struct calls calls_of(void *handle)
{
    struct calls filled;
    EACH_FUNCTION(LOOK_UP)
    return filled;
}

static inline struct tools tools_of(void *handle)
{
    struct tools filled;
    EACH_TOOL(LOOK_UP)
    return filled;
}
#undef LOOK_UP

#ifdef BIND_DIRECT
#define CALL(name) name
#define TOOL(name) name
#else
#define CALL(name) calls->to_##name
#define TOOL(name) tools->to_##name
#endif

static inline void need(int code, const char *what)
{
    if (code != 0) {
        fprintf(stderr, "%s: %d\n", what, code);
        exit(3);
    }
}
#define NEED(name, ...) need(TOOL(name)(__VA_ARGS__), #name)

/* One call; waits for the stream, so that each copy finds what the one before it left. */
#define DO(name, size, ...)                                                                                            \
    do {                                                                                                               \
        code[at_##name] = CALL(name)(__VA_ARGS__);                                                                     \
        bytes[at_##name] = (size);                                                                                     \
        NEED(aclrtSynchronizeStream, stream);                                                                          \
    } while (0)

#define BATCH(to, from) dsts, maxs, srcs, sizes, 2, aim(dsts, srcs, maxs, to, from), indexes, 1

/* Two items, 512 bytes apart, from host to device. */
static inline aclrtMemcpyBatchAttr *aim(void **dsts, void **srcs, size_t *maxs, char *to, char *from)
{
    static aclrtMemcpyBatchAttr attr;
    attr.dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
    attr.srcLoc.type = ACL_MEM_LOCATION_TYPE_HOST;
    for (int i = 0; i < 2; i++) {
        dsts[i] = to + 512 * i;
        srcs[i] = from + 512 * i;
        maxs[i] = 512;
    }
    return &attr;
}

static inline int run_all(const struct calls *calls, const struct tools *tools)
{
    enum { SIZE = 1 << 16 };
#define INDEX(name, ...) at_##name,
    enum { EACH_FUNCTION(INDEX) COUNT };
#undef INDEX
    static char variable[2048];
    int code[COUNT] = {0};
    size_t bytes[COUNT] = {0};
    aclrtStream stream;
    void *device, *pinned, *returned;
    (void)calls, (void)tools;

    NEED(aclInit, NULL);
    NEED(aclrtSetDevice, 0);
    NEED(aclrtCreateStream, &stream);
    NEED(aclrtMalloc, &device, SIZE, ACL_MEM_MALLOC_HUGE_FIRST);
    NEED(aclrtMallocHost, &pinned, SIZE);
    NEED(aclrtMallocHost, &returned, SIZE);
    NEED(ascendclSimRegisterSymbol, variable, sizeof variable);
    char *dev = (char *)device, *pin = (char *)pinned, *back = (char *)returned;
    memset(back, 0, SIZE);
    for (int i = 0; i < SIZE; i++)
        pin[i] = (char)(i * 7 + (i >> 8));
    /* The cells of the offset copy: the first two words on the device. */
    void *cells[2] = {dev + 0x9000, dev + 0x1000};
    memcpy(pin, cells, sizeof cells);

    DO(aclrtMemcpy, SIZE, dev, SIZE, pin, SIZE, ACL_MEMCPY_HOST_TO_DEVICE);
    DO(aclrtMemcpyAsync, 1001, dev + 0x4000, 2000, dev + 0x100, 1001, ACL_MEMCPY_DEVICE_TO_DEVICE, stream);
    DO(aclrtMemcpy2d, 10 * 30, back + 0x8000, 64, dev + 0x200, 32, 30, 10, ACL_MEMCPY_DEVICE_TO_HOST);
    DO(aclrtMemcpy2dAsync, 11 * 31, back + 0x8400, 64, dev + 0x300, 32, 31, 11, ACL_MEMCPY_DEVICE_TO_HOST, stream);

    void *dsts[2], *srcs[2];
    size_t maxs[2], sizes[2] = {201, 302}, indexes[1] = {0}, failed = 0;
    DO(aclrtMemcpyBatch, 503, BATCH(dev + 0x5000, pin + 0x400), &failed);
    sizes[1]++;
    DO(aclrtMemcpyBatchV2, 504, BATCH(dev + 0x5400, pin + 0x800));
    sizes[1]++;
    DO(aclrtMemcpyBatchAsync, 505, BATCH(dev + 0x5800, pin + 0xc00), &failed, stream);
    sizes[1]++;
    DO(aclrtMemcpyBatchAsyncV2, 506, BATCH(dev + 0x5c00, pin + 0x1000), stream);

    const void **source_cell = (const void **)(dev + 8);
    DO(aclrtMemcpyAsyncWithOffset, 701, (void **)dev, 2000, 16, source_cell, 701, 32, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE,
       stream);
    size_t desc_size = 0;
    char *desc = dev + 0xf000 + (-(uintptr_t)dev & 63);
    DO(aclrtGetMemcpyDescSize, 0, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, &desc_size);
    DO(aclrtSetMemcpyDesc, 0, desc, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, dev + 0x1000, dev + 0xa000, 800, NULL);
    DO(aclrtMemcpyAsyncWithDesc, 0, desc, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, stream);

    DO(aclrtMemcpyToSymbol, 101, variable, pin + 0x40, 101, 5, ACL_MEMCPY_HOST_TO_DEVICE);
    DO(aclrtMemcpyFromSymbol, 102, back + 0x9000, 2000, variable, 102, 4, ACL_MEMCPY_DEVICE_TO_HOST);
    DO(aclrtMemcpyToSymbolAsync, 103, variable, pin + 0x80, 103, 600, ACL_MEMCPY_HOST_TO_DEVICE, stream);
    DO(aclrtMemcpyFromSymbolAsync, 104, back + 0x9100, 2000, variable, 104, 599, ACL_MEMCPY_DEVICE_TO_HOST, stream);

    DO(aclrtMemset, 41, back + 0xa000, 64, 0x5a, 41);
    DO(aclrtMemsetAsync, 42, back + 0xa040, 64, 0x5b, 42, stream);
    DO(aclrtMemsetD32, 4 * 13, back + 0xa080, 64, 0x01020304, 13);
    DO(aclrtMemsetD32Async, 4 * 14, back + 0xa0c0, 64, 0x05060708, 14, stream);

    /* Everything that was written on the device. */
    DO(aclrtMemcpyAsyncWithCondition, 0x7003, back, SIZE, dev + 0x4000, 0x7003, ACL_MEMCPY_DEVICE_TO_HOST, stream);

    /* Read at the end, so that a call that reached the vendor by the way of another one shows too. */
#define REPORT(name, ...)                                                                                              \
    printf("%s code=%d vendor=%llu bytes=%zu\n", #name, code[at_##name],                                               \
           (unsigned long long)TOOL(ascendclSimCalls)(#name), bytes[at_##name]);
    EACH_FUNCTION(REPORT)
#undef REPORT
    unsigned long sum = desc_size;
    for (int i = 0; i < SIZE; i++)
        sum = sum * 31 + (unsigned char)back[i];
    printf("copied back: %lu, failed item: %zd\n", sum, (ssize_t)failed);
    return 0;
}

/* A host is a program, or with BIND_PLUGIN a library that bind_open.c opens. */
#ifdef __cplusplus
extern "C"
#endif
    int bind_run(int argc, char **argv);
#ifndef BIND_PLUGIN
int main(int argc, char **argv)
{
    return bind_run(argc, argv);
}
#endif

#endif
