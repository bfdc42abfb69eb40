/*
 * aclrtMemcpyAsyncWithCondition looks at the host memory first: pinned memory
 * is copied asynchronously, pageable memory before the call returns. The vendor
 * calls it deprecated (aclrtMemcpyAsync does the same today), but frameworks
 * still bind it, so here it is.
 *
 *   cc -std=c99 -Iinclude condition.c -lascendcl && ./a.out
 */
#include "example.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

enum { SIZE = 32 * 1024 };

static void round_trip(const char *what, uint8_t *in, uint8_t *out, void *device, unsigned seed, aclrtStream stream)
{
    fill(in, SIZE, seed);
    memset(out, 0, SIZE);
    CHECK(aclrtMemcpyAsyncWithCondition(device, SIZE, in, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK(aclrtMemcpyAsyncWithCondition(out, SIZE, device, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    CHECK(aclrtSynchronizeStream(stream));
    EXPECT(holds(out, SIZE, seed), "the bytes that were sent");
    printf("condition: %s memory, %d bytes up and down\n", what, SIZE);
}

int main(void)
{
    example_open();
    void *device = device_alloc(SIZE);
    aclrtStream stream;
    CHECK(aclrtCreateStream(&stream));

    uint8_t *pinned_in = pinned_alloc(SIZE);
    uint8_t *pinned_out = pinned_alloc(SIZE);
    round_trip("pinned", pinned_in, pinned_out, device, 7, stream);

    uint8_t *pageable_in = pageable_alloc(SIZE);
    uint8_t *pageable_out = pageable_alloc(SIZE);
    round_trip("pageable", pageable_in, pageable_out, device, 8, stream);

    free(pageable_out);
    free(pageable_in);
    CHECK(aclrtFreeHost(pinned_out));
    CHECK(aclrtFreeHost(pinned_in));
    CHECK(aclrtDestroyStream(stream));
    CHECK(aclrtFree(device));
    example_close();
    return 0;
}
