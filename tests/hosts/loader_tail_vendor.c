/* A vendor's library in which one function ends in a jump to another through the linkage table. */
#include "acl/acl.h"

aclError aclrtMemcpyAsync(void *dst, size_t max, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream stream)
{
    (void)dst, (void)max, (void)src, (void)kind, (void)stream;
    return count > 1000;
}

aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t max, const void *src, size_t count, aclrtMemcpyKind kind,
                                       aclrtStream stream)
{
    return aclrtMemcpyAsync(dst, max, src, count, kind, stream);
}
