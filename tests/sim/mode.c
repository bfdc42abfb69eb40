/*
 * With ASCENDCL_SIM_RUN_MODE=device the program runs on the product itself: the
 * kind is not corrected, and host to host is an ordinary copy.
 */
#define _GNU_SOURCE
#include "conform.h"

int main(void)
{
    open_world();
    aclrtRunMode mode = ACL_HOST;
    want("run mode", aclrtGetRunMode(&mode), OK);
    want("run mode: device", mode, ACL_DEVICE);

    paint(pin, SIZE, 1);
    memset(pin2, 0, SIZE);
    want("host to host on a stream", aclrtMemcpyAsync(pin2, SIZE, pin, SIZE, ACL_MEMCPY_HOST_TO_HOST, stream), OK);
    MUST(aclrtSynchronizeStream(stream));
    holds("host to host on a stream: bytes", painted(pin2, SIZE, 1));
    want("a kind against the location is not refused",
         aclrtMemcpyAsync(dev, SIZE, pin, SIZE, ACL_MEMCPY_DEVICE_TO_HOST, stream), OK);
    MUST(aclrtSynchronizeStream(stream));
    want("memcpy", aclrtMemcpy(dev, SIZE, pin, SIZE, ACL_MEMCPY_HOST_TO_DEVICE), OK);
    holds("memcpy: bytes", has(dev, SIZE, 1));
    return finish();
}
