/* Asks by weak references which functions are there, in code and in static data. */
#include "acl/acl.h"
#include <stdio.h>

#pragma weak aclrtMemcpy
#pragma weak aclrtMemcpyBatch
#pragma weak aclrtMemcpyBatchV2
#pragma weak aclrtMemsetD32

static void *const in_data[] = {(void *)aclrtMemcpy, (void *)aclrtMemcpyBatch};

int main(void)
{
    printf("aclrtMemcpy %d %d\n", aclrtMemcpy != NULL, in_data[0] != NULL);
    printf("aclrtMemcpyBatch %d %d\n", aclrtMemcpyBatch != NULL, in_data[1] != NULL);
    printf("aclrtMemcpyBatchV2 %d\n", aclrtMemcpyBatchV2 != NULL);
    printf("aclrtMemsetD32 %d\n", aclrtMemsetD32 != NULL);
    if (aclrtMemcpy)
        printf("copy %d\n", aclrtMemcpy(NULL, 0, NULL, 0, ACL_MEMCPY_DEFAULT));
    return 0;
}
