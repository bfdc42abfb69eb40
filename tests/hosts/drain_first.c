/* drain_first HOW: a thread that is set apart from the others makes the first copies, and the program waits for its
 * standard input to end. HOW: `pinned` to one processor, the first that it may run on; or `fifo` or `batch`, the policy
 * that it is scheduled by. */
#include "guest_host.h"
#include <pthread.h>
#include <sched.h>

static const char *how;

static void *first(void *unused)
{
    if (!strcmp(how, "pinned")) {
        cpu_set_t may, one;
        CPU_ZERO(&one);
        if (sched_getaffinity(0, sizeof may, &may) != 0)
            _exit(80);
        int processor = 0;
        while (!CPU_ISSET(processor, &may))
            processor++;
        CPU_SET(processor, &one);
        if (sched_setaffinity(0, sizeof one, &one) != 0)
            _exit(81);
    } else {
        int is_fifo = !strcmp(how, "fifo");
        struct sched_param param = {.sched_priority = is_fifo};
        if (sched_setscheduler(0, is_fifo ? SCHED_FIFO : SCHED_BATCH, &param) != 0)
            _exit(82);
    }
    copies(10);
    own(10);
    return unused;
}

int main(int argc, char **argv)
{
    limit();
    if (argc < 2)
        return 2;
    how = argv[1];
    pthread_t thread;
    if (pthread_create(&thread, NULL, first, NULL) != 0)
        return 3;
    pthread_join(thread, NULL);
    char byte;
    return read(0, &byte, 1) == 0 ? 0 : 4;
}
