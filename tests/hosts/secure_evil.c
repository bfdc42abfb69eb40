/* A library that its caller has put where a program with more privileges may look for the vendor's. */
#include "acl/acl.h"
#include <stdio.h>

__attribute__((constructor)) static void start(void)
{
    printf("another library was loaded\n");
}

aclError aclrtMemcpyBatch(void **d, size_t *rooms, void **s, size_t *sizes, size_t n, aclrtMemcpyBatchAttr *a, size_t *i,
                          size_t k, size_t *fail)
{
    (void)d, (void)rooms, (void)s, (void)sizes, (void)n, (void)a, (void)i, (void)k, (void)fail;
    return 0;
}
