/* Calls, and starts this program again by posix_spawn, vfork and system; each of those calls too. */
#include "guest_host.h"
#include <spawn.h>

extern char **environ;

int main(int argc, char **argv)
{
    limit();
    if (argc > 1) {
        copies(3);
        return 0;
    }
    char path[4096], again[] = "again";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    char *arguments[] = {argv[0], again, NULL};
    pid_t child;
    copies(2);
    if (posix_spawn(&child, path, NULL, NULL, arguments, environ) != 0)
        return 2;
    reap(child);
    child = vfork();
    if (child == 0) {
        execv(path, arguments);
        _exit(94);
    }
    reap(child);
    char line[4200];
    snprintf(line, sizeof line, "'%s' again", path);
    printf("system gave %d\n", system(line));
    copies(2);
    own(4 + 3 * 3);
    return 0;
}
