/*
 * Copies on a stream. With pinned host memory aclrtMemcpyAsync only queues the
 * work; copies on one stream run in the order in which they were queued, and
 * nobody may touch the buffers before the stream was waited for.
 *
 *   cc -std=c99 -Iinclude async.c -lascendcl && ./a.out
 */
#include "example.h"

enum { SIZE = 256 * 1024, ROUNDS = 4 };

int main(void)
{
    example_open();

    uint8_t *in = pinned_alloc(SIZE);
    uint8_t *out = pinned_alloc(SIZE);
    void *a = device_alloc(SIZE);
    void *b = device_alloc(SIZE);
    aclrtStream stream;
    CHECK(aclrtCreateStream(&stream));

    for (unsigned round = 0; round < ROUNDS; round++) {
        fill(in, SIZE, round);
        memset(out, 0, SIZE);
        CHECK(aclrtMemcpyAsync(a, SIZE, in, SIZE, ACL_MEMCPY_HOST_TO_DEVICE, stream));
        CHECK(aclrtMemcpyAsync(b, SIZE, a, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
        CHECK(aclrtMemcpyAsync(out, SIZE, b, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, stream));

        /* Until here `in` must not be changed and `out` not be read. */
        CHECK(aclrtSynchronizeStream(stream));
        EXPECT(holds(out, SIZE, round), "this round's bytes");
        printf("async: round %u complete, checksum %08" PRIx32 "\n", round, checksum(out, SIZE));
    }

    /* Ordinary memory is taken too, but then the call itself waits for the
     * copy: asynchronous in name only. */
    uint8_t *pageable = pageable_alloc(SIZE);
    CHECK(aclrtMemcpyAsync(pageable, SIZE, b, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    EXPECT(holds(pageable, SIZE, ROUNDS - 1), "the bytes to be there on return");
    printf("async: a pageable copy was complete when the call returned\n");

    CHECK(aclrtSynchronizeStream(stream));
    free(pageable);
    CHECK(aclrtDestroyStream(stream));
    CHECK(aclrtFree(b));
    CHECK(aclrtFree(a));
    CHECK(aclrtFreeHost(out));
    CHECK(aclrtFreeHost(in));
    example_close();
    return 0;
}
