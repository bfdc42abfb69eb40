/* guest_making [mark]: a thread copies once while another one makes the ring file, and neither copies again. With `mark`
 * it leaves a mark meanwhile, and copies later. */
#include "guest_host.h"
#include "aclshim.h"
#include <dlfcn.h>
#include <pthread.h>

static volatile int is_making, may_go_on;

/* What the file's room is asked for with. */
int posix_fallocate(int fd, off_t offset, off_t length)
{
    is_making = 1;
    while (!may_go_on)
        sched_yield();
    int (*next)(int, off_t, off_t) = (int (*)(int, off_t, off_t))dlsym(RTLD_NEXT, "posix_fallocate");
    return next(fd, offset, length);
}

static void *first(void *unused)
{
    copies(1);
    return unused;
}

int main(int argc, char **argv)
{
    limit();
    int marks = argc > 1 && !strcmp(argv[1], "mark");
    pthread_t maker;
    pthread_create(&maker, NULL, first, NULL);
    while (!is_making)
        sched_yield();
    if (marks)
        aclshim_mark("nobody has room for it");
    else
        copies(1);
    may_go_on = 1;
    pthread_join(maker, NULL);
    copies(marks);
    printf("2 calls\n");
    return 0;
}
