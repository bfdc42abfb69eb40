/* life_vfork: the first copies of the process come from a child that shares its memory and ends; then ten more of its own, and
 * ten after the file `go` is there. */
#include "guest_host.h"

int main(void)
{
    limit();
    pid_t child = vfork();
    if (child == 0) {
        copies(5);
        _exit(0);
    }
    reap(child);
    copies(10);
    close(open("here", O_WRONLY | O_CREAT, 0600));
    while (access("go", F_OK) != 0)
        usleep(1000);
    copies(10);
    return 0;
}
