/*
 * What the examples share: stop at the first unexpected code, open and close
 * the device, fill and verify buffers. Everything here is ordinary user code.
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

/* Ends the program with the call and its code if the call did not return 0. */
#define CHECK(call)                                                                     \
    do {                                                                                \
        aclError check_code = (call);                                                   \
        if (check_code != ACL_SUCCESS) {                                                \
            fprintf(stderr, "%s:%d: %s returned %d\n", __FILE__, __LINE__, #call, check_code); \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

/* Ends the program with `what` if `condition` does not hold. */
#define EXPECT(condition, what)                                                \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "%s:%d: expected: %s\n", __FILE__, __LINE__, what); \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

static inline void example_open(void)
{
    CHECK(aclInit(NULL));
    CHECK(aclrtSetDevice(0));
}

static inline void example_close(void)
{
    CHECK(aclrtResetDevice(0));
    CHECK(aclFinalize());
}

static inline void *device_alloc(size_t size)
{
    void *p = NULL;
    CHECK(aclrtMalloc(&p, size, ACL_MEM_MALLOC_HUGE_FIRST));
    return p;
}

/* Pinned: the device can read it by itself, so copies need not block. */
static inline void *pinned_alloc(size_t size)
{
    void *p = NULL;
    CHECK(aclrtMallocHost(&p, size));
    return p;
}

/* Pageable: ordinary memory. */
static inline void *pageable_alloc(size_t size)
{
    void *p = malloc(size);
    EXPECT(p != NULL, "memory");
    return p;
}

/* The byte that belongs at `i` of a buffer with this seed. */
static inline uint8_t pattern(size_t i, unsigned seed)
{
    return (uint8_t)((i * 31 + i / 251 + seed * 97) & 0xFF);
}

static inline void fill(void *buffer, size_t size, unsigned seed)
{
    uint8_t *bytes = buffer;
    for (size_t i = 0; i < size; i++)
        bytes[i] = pattern(i, seed);
}

static inline int holds(const void *buffer, size_t size, unsigned seed)
{
    const uint8_t *bytes = buffer;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != pattern(i, seed))
            return 0;
    return 1;
}

/* FNV-1a: small, and different for swapped blocks. */
static inline uint32_t checksum(const void *buffer, size_t size)
{
    const uint8_t *bytes = buffer;
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * 16777619u;
    return sum;
}

#endif
