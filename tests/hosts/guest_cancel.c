/* guest_cancel HOW: the vendor's 2nd call never comes back. Its thread ends there: cancelled, by pthread_exit in a
 * signal handler, or by a jump out of one. Then the others go on. */
#include "guest_host.h"
#include <pthread.h>
#include <setjmp.h>

static const char *how;
static volatile int inside;
static sigjmp_buf back;

static void handler(int number)
{
    (void)number;
    if (!strcmp(how, "jump"))
        siglongjmp(back, 1);
    pthread_exit((void *)7);
}

static void cleaned(void *unused)
{
    (void)unused;
    printf("cleaned up\n");
}

static void *hangs(void *unused)
{
    (void)unused;
    pthread_cleanup_push(cleaned, NULL);
    if (sigsetjmp(back, 1) == 0) {
        inside = 1;
        copy();
    }
    copies(2);
    pthread_cleanup_pop(0);
    return (void *)8;
}

int main(int argc, char **argv)
{
    limit();
    how = argc > 1 ? argv[1] : "cancel";
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    copies(1);
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, hangs, NULL);
    while (!inside || ascendclSimCalls("aclrtMemcpy") < 2)
        sched_yield();
    if (!strcmp(how, "cancel"))
        pthread_cancel(thread);
    else
        pthread_kill(thread, SIGUSR1);
    pthread_join(thread, &result);
    printf("ended with %ld\n", result == PTHREAD_CANCELED ? -1 : (long)result);
    copies(3);
    own(5 + (strcmp(how, "jump") ? 0 : 2));
    return 0;
}
