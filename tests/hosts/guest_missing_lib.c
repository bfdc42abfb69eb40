/* Needs the vendor's functions and names no library for them: they are there only if another library brings them. */
#include "guest_host.h"

void guest_missing(void)
{
    limit();
    for (int i = 0; i < 3; i++) {
        errno = 77;
        int code = copy();
        printf("copy %d errno %d\n", code, errno);
    }
    printf("set %d\n", aclrtMemset(NULL, 0, 0, 0));
}
