/* A vendor's library with symbol versions: two versions of aclrtMemcpy, one each of two others. */
#include "acl/acl.h"

aclError memcpy_one(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind)
{
    (void)dst, (void)destMax, (void)src, (void)count, (void)kind;
    return 1;
}

aclError memcpy_two(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind)
{
    (void)dst, (void)destMax, (void)src, (void)count, (void)kind;
    return 2;
}

__asm__(".symver memcpy_one, aclrtMemcpy@CANN_1");
__asm__(".symver memcpy_two, aclrtMemcpy@@CANN_2");

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
    (void)devPtr, (void)maxCount, (void)value, (void)count;
    return 3;
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream)
{
    (void)dst, (void)destMax, (void)src, (void)count, (void)kind, (void)stream;
    return 4;
}
