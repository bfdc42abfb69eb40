/* Five calls that jump on, and one that does not. */
#include "acl/acl.h"
#include <stdio.h>

int main(void)
{
    char from[8] = {0}, to[8];
    int sum = aclrtMemcpyAsync(to, 8, from, 8, ACL_MEMCPY_DEFAULT, NULL);
    for (int i = 0; i < 5; i++)
        sum += aclrtMemcpyAsyncWithCondition(to, 8, from, 8, ACL_MEMCPY_DEFAULT, NULL);
    printf("%d\n", sum);
    return 0;
}
