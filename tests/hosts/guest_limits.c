/* guest_limits NAME VALUE [full]: copies under a limit of the system; the limit's signal would end it. With `full`, the
 * file that its log would be in is as long as that. */
#include "guest_host.h"
#include <sys/resource.h>
#include <sys/stat.h>

static int fill(off_t size)
{
    char path[64];
    mkdir("out", 0700);
    snprintf(path, sizeof path, "out/aclshim-%d.jsonl", (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    return fd < 0 || ftruncate(fd, size) != 0 || close(fd) != 0;
}

int main(int argc, char **argv)
{
    limit();
    if (argc < 3)
        return 2;
    rlim_t value = (rlim_t)atoll(argv[2]);
    struct rlimit limits = {.rlim_cur = value, .rlim_max = value};
    int which = !strcmp(argv[1], "fsize") ? RLIMIT_FSIZE : !strcmp(argv[1], "nofile") ? RLIMIT_NOFILE : RLIMIT_AS;
    void *volatile heap = malloc(100000); /* so that the vendor still finds a little */
    free(heap);
    if (argc > 3 && fill((off_t)value) != 0)
        return 5;
    if (setrlimit(which, &limits) != 0)
        return 3;
    for (int i = 0; i < 100; i++) {
        errno = 44;
        if (copy() != 0 || errno != 44)
            return 4;
    }
    printf("100 copies\n");
    return 0;
}
