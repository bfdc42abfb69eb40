/* A library that uses a function if another library has brought it: a weak reference, bound when the library is opened. */
#include "acl/acl.h"
#include <stdio.h>

#pragma weak aclrtMemcpyAsync

int go(void)
{
    printf("aclrtMemcpyAsync is %s\n", aclrtMemcpyAsync ? "there" : "missing");
    return aclrtMemcpyAsync ? aclrtMemcpyAsync(NULL, 0, NULL, 0, ACL_MEMCPY_DEFAULT, NULL) : -1;
}
