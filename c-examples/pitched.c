/*
 * Rows with gaps: an image of HEIGHT rows of WIDTH bytes lies packed in host
 * memory and padded on the device. aclrtMemcpy2d copies the rows and leaves
 * the padding alone. The asynchronous form does the same on a stream.
 *
 *   cc -std=c99 -Iinclude pitched.c -lascendcl && ./a.out
 */
#include "example.h"

enum { WIDTH = 300, HEIGHT = 40, DEVICE_PITCH = 512, HOST_PITCH = 320 };

/* Row `y` of the image starts with byte `y * WIDTH` of the pattern. */
static int row_holds(const uint8_t *row, size_t y, unsigned seed)
{
    for (size_t x = 0; x < WIDTH; x++)
        if (row[x] != pattern(y * WIDTH + x, seed))
            return 0;
    return 1;
}

int main(void)
{
    example_open();

    uint8_t *packed = pinned_alloc(WIDTH * HEIGHT);
    uint8_t *padded = pinned_alloc(HOST_PITCH * HEIGHT);
    void *device = device_alloc(DEVICE_PITCH * HEIGHT);
    aclrtStream stream;
    CHECK(aclrtCreateStream(&stream));
    CHECK(aclrtMemset(device, DEVICE_PITCH * HEIGHT, 0xEE, DEVICE_PITCH * HEIGHT));

    /* Up: pitch and width are bytes, height is rows. */
    fill(packed, WIDTH * HEIGHT, 3);
    CHECK(aclrtMemcpy2d(device, DEVICE_PITCH, packed, WIDTH, WIDTH, HEIGHT, ACL_MEMCPY_HOST_TO_DEVICE));
    printf("pitched: %d rows of %d bytes up\n", HEIGHT, WIDTH);

    /* Down, into yet another pitch. */
    memset(padded, 0x55, HOST_PITCH * HEIGHT);
    CHECK(aclrtMemcpy2d(padded, HOST_PITCH, device, DEVICE_PITCH, WIDTH, HEIGHT, ACL_MEMCPY_DEVICE_TO_HOST));
    for (size_t y = 0; y < HEIGHT; y++) {
        const uint8_t *row = padded + y * HOST_PITCH;
        EXPECT(row_holds(row, y, 3), "each row of the image");
        for (size_t x = WIDTH; x < HOST_PITCH; x++)
            EXPECT(row[x] == 0x55, "the padding to be left alone");
    }
    printf("pitched: rows came back, padding untouched\n");

    /* The same on a stream: two copies in order, one wait. */
    fill(packed, WIDTH * HEIGHT, 4);
    CHECK(aclrtMemcpy2dAsync(device, DEVICE_PITCH, packed, WIDTH, WIDTH, HEIGHT, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK(aclrtMemcpy2dAsync(padded, HOST_PITCH, device, DEVICE_PITCH, WIDTH, HEIGHT, ACL_MEMCPY_DEVICE_TO_HOST,
                             stream));
    CHECK(aclrtSynchronizeStream(stream));
    for (size_t y = 0; y < HEIGHT; y++)
        EXPECT(row_holds(padded + y * HOST_PITCH, y, 4), "each row of the second image");
    printf("pitched: asynchronous round trip\n");

    /* What lies between the rows on the device is still what memset put there. */
    uint8_t gap;
    CHECK(aclrtMemcpy(&gap, 1, (uint8_t *)device + WIDTH, 1, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT(gap == 0xEE, "the gap on the device to be left alone");
    printf("pitched: gaps on the device untouched\n");

    CHECK(aclrtDestroyStream(stream));
    CHECK(aclrtFree(device));
    CHECK(aclrtFreeHost(padded));
    CHECK(aclrtFreeHost(packed));
    example_close();
    return 0;
}
