/* record_end HOW: calls on three threads, no more than their rings hold, and then an end of a certain kind; some go on in another process or thread. What
 * was printed before is still in the buffer. */
#include "record_host.h"
#include <pthread.h>
#include <sched.h>

static const char *how;
static pthread_t first;

static void at_end(void) { printf("at exit\n"); }

static void at_quick(void)
{
    if (write(1, "at quick exit\n", 14) != 14)
        _exit(84);
}

static int is(const char *name) { return !strcmp(how, name); }

static void *work(void *lane)
{
    take((uint64_t)lane);
    calls((uint64_t)lane, 100);
    if (is("last") || is("leaves")) {
        if (lane == (void *)1)
            pthread_join(first, NULL);
        calls((uint64_t)lane, 100);
        if (is("leaves") && lane == (void *)1) {
            /* Not amid a call of the other one. */
            while (truth->lanes[2].ended < 200)
                sched_yield();
            exit(7);
        }
        if (is("leaves"))
            pause();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    begin();
    how = argc > 1 ? argv[1] : "return";
    printf("%s\n", how);
    atexit(at_end);
    at_quick_exit(at_quick);
    if (is("again")) {
        take(3);
        calls(3, 300);
        return 8;
    }
    take(0);
    calls(0, 300);
    first = pthread_self();
    pthread_t threads[2];
    for (uint64_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    if (is("last") || is("leaves"))
        pthread_exit(NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    if (is("exit"))
        exit(3);
    if (is("_exit"))
        _exit(4);
    if (is("quick_exit"))
        quick_exit(5);
    if (is("abort"))
        abort();
    if (is("fault"))
        *(volatile int *)16 = 0;
    if (is("kill"))
        kill(getpid(), SIGKILL);
    if (is("exec")) {
        fflush(stdout);
        execl("/proc/self/exe", argv[0], "again", (char *)NULL);
        _exit(94);
    }
    if (is("daemon")) {
        fflush(stdout);
        if (daemon(1, 1) != 0)
            return 9;
        alarm(600);
        take(3);
        calls(3, 300);
    }
    return 6;
}
