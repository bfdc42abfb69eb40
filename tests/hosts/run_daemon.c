/* run_daemon: three copies; what it leaves behind waits for the file `go` in its folder and copies eleven times.
 * With an argument it has copied before: its ring is there when its parent ends. */
#include "guest_host.h"

int main(int argc, char **argv)
{
    (void)argv;
    limit();
    copies(3);
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() != 0)
            _exit(0);
        limit();
        if (argc > 1)
            copies(5);
        int here = open("here", O_WRONLY | O_CREAT, 0600);
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        close(here);
        while (access("go", F_OK) != 0)
            usleep(1000);
        copies(argc > 1 ? 6 : 11);
        _exit(0);
    }
    reap(child);
    while (access("here", F_OK) != 0)
        usleep(1000);
    printf("left\n");
    return 0;
}
