/* record_limits NAME VALUE CALLS: calls under a limit of the system. */
#include "record_host.h"
#include <sys/resource.h>

int main(int argc, char **argv)
{
    begin();
    if (argc < 4)
        return 2;
    rlim_t value = (rlim_t)atoll(argv[2]);
    struct rlimit limits = {.rlim_cur = value, .rlim_max = value};
    int which = !strcmp(argv[1], "fsize") ? RLIMIT_FSIZE : !strcmp(argv[1], "nofile") ? RLIMIT_NOFILE : RLIMIT_NPROC;
    take(0);
    printf("limited\n"); /* so that the buffer is there */
    if (setrlimit(which, &limits) != 0)
        return 3;
    calls(0, (uint64_t)atoll(argv[3]));
    return 0;
}
