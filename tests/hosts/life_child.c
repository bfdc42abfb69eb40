/* life_child HOW: ten copies; a child, made by `fork` or by the system call `clone` itself, lives on without a copy of its
 * own until the file `go` is there. The process ends when the file `end` is there, or before its child has to. */
#include "guest_host.h"
#include <sys/syscall.h>

static void await(const char *file)
{
    while (access(file, F_OK) != 0)
        usleep(1000);
}

int main(int argc, char **argv)
{
    limit();
    copies(10);
    pid_t child = argc > 1 && !strcmp(argv[1], "clone") ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child < 0)
        return 2;
    if (child == 0) {
        limit();
        await("go");
        _exit(0);
    }
    close(open("here", O_WRONLY | O_CREAT, 0600));
    await("end");
    return 0;
}
