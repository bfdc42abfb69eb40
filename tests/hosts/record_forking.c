/* record_forking BEFORE INSIDE: so many copies, one in which the process forks, so many in the child while it is inside
 * of that one, and one in the parent. */
#include "record_forking.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int inside;

static aclError copy(size_t count)
{
    return aclrtMemcpyAsync((void *)0x1000, count, (void *)0x2000, count, ACL_MEMCPY_HOST_TO_HOST, NULL);
}

static void copies(void)
{
    for (int made = 0; made < inside; made++)
        copy(8);
}

int main(int argc, char **argv)
{
    int before = argc > 2 ? atoi(argv[1]) : -1;
    inside = argc > 2 ? atoi(argv[2]) : -1;
    in_the_child = copies;
    for (int made = 0; made < before; made++)
        copy(16);
    aclError code = copy(FORKING);
    if (code == OF_THE_CHILD)
        _exit(0);
    printf("%d, then %d\n", code, copy(32));
    return 0;
}
