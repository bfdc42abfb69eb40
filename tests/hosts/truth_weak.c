/* Asks the linker's way whether a function is there. */
#include <stdio.h>
#include "acl/acl.h"

#pragma weak aclrtMemcpyBatch
#pragma weak aclrtMemcpyBatchV2
#pragma weak aclrtMemset

int main(void)
{
    printf("set %d batch %d second %d\n", aclrtMemset != NULL, aclrtMemcpyBatch != NULL, aclrtMemcpyBatchV2 != NULL);
    return 0;
}
