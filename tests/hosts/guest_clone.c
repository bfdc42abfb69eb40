/* A child made by the system call itself: no handler of fork runs. */
#include "guest_host.h"
#include <sys/syscall.h>

int main(void)
{
    limit();
    copies(5);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        copies(7);
        _exit(0);
    }
    reap(child);
    copies(2);
    own(5 + 7 + 2);
    return 0;
}
