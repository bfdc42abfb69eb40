/* Calls, forks; the child calls and becomes this program again, which calls, forks, and its child calls too. */
#include "guest_host.h"

int main(int argc, char **argv)
{
    limit();
    if (argc > 1) {
        copies(7);
        pid_t child = fork();
        if (child == 0) {
            copies(2);
            _exit(0);
        }
        reap(child);
        return 0;
    }
    copies(5);
    pid_t child = fork();
    if (child == 0) {
        copies(3);
        execl("/proc/self/exe", argv[0], "again", (char *)NULL);
        _exit(94);
    }
    reap(child);
    own(5 + 3 + 7 + 2);
    return 0;
}
