/* A vendor's library that copies nothing and returns at once. */
#include "acl/acl.h"

#define UNUSED __attribute__((unused))

aclError aclrtMemcpyAsync(void *dst UNUSED, size_t room UNUSED, const void *src UNUSED, size_t count UNUSED,
                          aclrtMemcpyKind kind UNUSED, aclrtStream stream UNUSED)
{
    return 0;
}
