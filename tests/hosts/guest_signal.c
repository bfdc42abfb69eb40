/* guest_signal HOW: calls in a loop while signals come as fast as another thread can send them; the handler calls too.
 * HOW: `warm` (a call before the first signal), `cold` (none), `stack` (the handler has a stack of its own). */
#include "guest_host.h"
#include <pthread.h>

enum { SIGNALS = 30000 };

static volatile sig_atomic_t done;
static volatile uint64_t handled;
static pthread_t target;

static void handler(int number)
{
    (void)number;
    int before = errno;
    errno = 55;
    copies(1);
    handled++;
    if (errno != 55)
        _exit(95);
    errno = before;
}

static void *send(void *unused)
{
    for (int i = 0; i < SIGNALS; i++)
        pthread_kill(target, SIGUSR1);
    done = 1;
    return unused;
}

int main(int argc, char **argv)
{
    limit();
    const char *how = argc > 1 ? argv[1] : "warm";
    static char room[64 * 1024];
    struct sigaction action = {.sa_handler = handler};
    uint64_t looped = 0;
    if (!strcmp(how, "stack")) {
        stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
        sigaltstack(&stack, NULL);
        action.sa_flags = SA_ONSTACK;
    }
    if (strcmp(how, "cold") != 0) {
        copies(1);
        looped++;
    }
    sigaction(SIGUSR1, &action, NULL);
    target = pthread_self();
    pthread_t sender;
    pthread_create(&sender, NULL, send, NULL);
    for (; !done; looped++)
        copies(1);
    pthread_join(sender, NULL);
    own(looped);
    own(handled);
    printf("%s\n", handled ? "handled" : "no signal came");
    return 0;
}
