/*
 * The plain copy: host to device, device to device, and back. aclrtMemcpy
 * returns when the bytes are there; it takes any host memory.
 *
 *   cc -std=c99 -Iinclude linear.c -lascendcl && ./a.out
 */
#include "example.h"

enum { SIZE = 64 * 1024 };

int main(void)
{
    example_open();

    uint8_t *in = pageable_alloc(SIZE);
    uint8_t *out = pageable_alloc(SIZE);
    void *a = device_alloc(SIZE);
    void *b = device_alloc(SIZE);
    fill(in, SIZE, 1);
    memset(out, 0, SIZE);

    /* destMax is the room behind dst, count what is to be copied. */
    CHECK(aclrtMemcpy(a, SIZE, in, SIZE, ACL_MEMCPY_HOST_TO_DEVICE));
    CHECK(aclrtMemcpy(b, SIZE, a, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE));
    CHECK(aclrtMemcpy(out, SIZE, b, SIZE, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT(holds(out, SIZE, 1), "the round trip to give back what was sent");
    printf("linear: %d bytes went up, across and down\n", SIZE);

    /* A part of a buffer: device pointers can be added to like any others. */
    memset(out, 0, SIZE);
    CHECK(aclrtMemcpy(out, SIZE, (uint8_t *)b + 4096, 1000, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT(memcmp(out, in + 4096, 1000) == 0, "1000 bytes from the middle");
    EXPECT(out[1000] == 0, "nothing behind them");
    printf("linear: 1000 bytes from offset 4096\n");

    /* The library can find the direction out by itself. */
    memset(out, 0, SIZE);
    CHECK(aclrtMemcpy(out, SIZE, b, SIZE, ACL_MEMCPY_DEFAULT));
    EXPECT(holds(out, SIZE, 1), "the same bytes with ACL_MEMCPY_DEFAULT");
    printf("linear: direction left to the library\n");

    CHECK(aclrtFree(b));
    CHECK(aclrtFree(a));
    free(out);
    free(in);
    example_close();
    return 0;
}
