/* record_forking BEFORE INSIDE [ROOM]: so many copies, one in which the process forks, so many in the child while it is
 * inside of that one, and one in the parent. With ROOM the destination of the one that forks has so many bytes more, and
 * the parent is killed inside of it when the child has ended. */
#include "record_forking.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int inside;

static aclError copy_with(size_t room, size_t count)
{
    return aclrtMemcpyAsync((void *)0x1000, count + room, (void *)0x2000, count, ACL_MEMCPY_HOST_TO_HOST, NULL);
}

static aclError copy(size_t count)
{
    return copy_with(0, count);
}

static void is_killed(void)
{
    kill(getpid(), SIGKILL);
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
    size_t room = argc > 3 ? (size_t)atoi(argv[3]) : 0;
    in_the_child = copies;
    if (argc > 3)
        in_the_parent = is_killed;
    for (int made = 0; made < before; made++)
        copy(16);
    aclError code = copy_with(room, FORKING);
    if (code == OF_THE_CHILD)
        _exit(0);
    printf("%d, then %d\n", code, copy(32));
    return 0;
}
