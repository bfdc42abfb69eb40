/* run_end HOW: seven copies, and an end: a number is an exit status, `s` and a number a signal. */
#include "guest_host.h"
#include <sys/resource.h>

int main(int argc, char **argv)
{
    limit();
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (argc < 2)
        return 2;
    copies(7);
    printf("ends\n");
    fflush(stdout);
    if (argv[1][0] == 's')
        kill(getpid(), atoi(argv[1] + 1));
    _exit(atoi(argv[1]));
}
