/* A plugin that copies in its constructor. */
#include "acl/acl.h"
#include <stdio.h>

__attribute__((constructor)) static void start(void)
{
    printf("copied %d\n", aclrtMemcpyAsync(NULL, 0, NULL, 0, ACL_MEMCPY_DEFAULT, NULL));
}
