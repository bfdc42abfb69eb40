/* guest_making: a thread copies once while another one makes the ring file, and neither copies again. */
#include "guest_host.h"
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

int main(void)
{
    limit();
    pthread_t maker;
    pthread_create(&maker, NULL, first, NULL);
    while (!is_making)
        sched_yield();
    copies(1);
    may_go_on = 1;
    pthread_join(maker, NULL);
    printf("2 calls\n");
    own(2);
    return 0;
}
