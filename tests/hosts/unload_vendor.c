/* A part of a vendor's library: it lacks aclrtMemcpy, may be unloaded, and says when it is. */
#include "acl/acl.h"
#include <stdio.h>

static int calls;

aclError aclrtMemcpyAsync(void *dst, size_t max, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream stream)
{
    (void)dst, (void)max, (void)src, (void)kind, (void)stream;
    calls++;
    return count > 1000;
}

__attribute__((destructor)) static void end(void)
{
    printf("unloaded after %d calls\n", calls);
    fflush(stdout);
}
