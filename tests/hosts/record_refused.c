/* record_refused CALL CALLS ERROR: from before the first copy on the system answers one system call with that number. */
#include "record_filter.h"
#include "record_host.h"
#include <dirent.h>

/* Those that newer processors do not have any more. */
#ifndef SYS_mkdir
#define SYS_mkdir SYS_mkdirat
#endif
#ifndef SYS_unlink
#define SYS_unlink SYS_unlinkat
#endif

static const struct {
    const char *name;
    int numbers[2];
    int is_silent; /* nothing comes of it that could be waited for */
} known[] = {
    {"none", {-1, -1}, 0},
    {"openat", {SYS_openat, SYS_openat}, 1},
    {"clone", {SYS_clone, SYS_clone3}, 0},
    {"close_range", {SYS_close_range, SYS_close_range}, 0},
    {"unshare", {SYS_close_range, SYS_unshare}, 0}, /* only used without the other */
    {"futex", {SYS_futex, SYS_futex}, 0},
    {"flock", {SYS_flock, SYS_flock}, 0},
    {"mmap", {SYS_mmap, SYS_mmap}, 1},
    {"write", {SYS_write, SYS_writev}, 0},
    {"truncate", {SYS_ftruncate, SYS_fallocate}, 0},
    {"mkdir", {SYS_mkdir, SYS_mkdirat}, 1},
    {"stat", {SYS_newfstatat, SYS_fstat}, 1},
    {"statx", {SYS_statx, SYS_statx}, 0},
    {"unlink", {SYS_unlink, SYS_unlinkat}, 0},
    {"sigmask", {SYS_rt_sigprocmask, SYS_rt_sigprocmask}, 0},
    {"prctl", {SYS_prctl, SYS_prctl}, 0},
};

/* Until something is written: the end of a program waits for that, but not for ever. */
static void wait_for_output(void)
{
    for (int files = 0; files < 3; usleep(1000)) { /* "." and ".." */
        DIR *out = opendir("out");
        for (files = 0; out && readdir(out); files++)
            ;
        if (out)
            closedir(out);
    }
}

int main(int argc, char **argv)
{
    begin();
    if (argc < 4)
        return 2;
    take(0);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, argv[1]))
            continue;
        refuse_with(known[i].numbers[0], known[i].numbers[1], atoi(argv[3]));
        calls(0, (uint64_t)atoll(argv[2]));
        if (getenv("LD_PRELOAD") && !known[i].is_silent)
            wait_for_output();
        printf("called\n");
        return 0;
    }
    return 3;
}
