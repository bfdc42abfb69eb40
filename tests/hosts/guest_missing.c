/* Linked to no vendor's library at all: the functions are there only if somebody brings them. */
#include "guest_host.h"

#pragma weak aclrtMemcpy
#pragma weak aclrtMemset

int main(void)
{
    limit();
    if (!aclrtMemcpy || !aclrtMemset) {
        printf("not there\n");
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        errno = 77;
        int code = copy();
        printf("copy %d errno %d\n", code, errno);
    }
    printf("set %d\n", aclrtMemset(NULL, 0, 0, 0));
    return 0;
}
