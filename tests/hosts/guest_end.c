/* guest_end HOW: 1000 calls, then an end. */
#include "guest_host.h"
#include <pthread.h>

int main(int argc, char **argv)
{
    limit();
    const char *how = argc > 1 ? argv[1] : "return";
    copies(1000);
    own(1000);
    if (!strcmp(how, "exit"))
        exit(3);
    if (!strcmp(how, "_exit"))
        _exit(4);
    if (!strcmp(how, "quick_exit"))
        quick_exit(5);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "fault"))
        *(volatile int *)16 = 0;
    if (!strcmp(how, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(how, "pthread_exit"))
        pthread_exit(NULL);
    return 6;
}
