/* edge_pending: signals that the program holds back are pending when it first copies, and stay so. */
#include "guest_host.h"

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGUSR1, SIGTERM};
enum { SIGNALS = sizeof signals / sizeof *signals };

static volatile int handled;

static void handler(int number)
{
    (void)number;
    handled++;
}

int main(void)
{
    limit();
    sigset_t set, before;
    sigemptyset(&set);
    for (int i = 0; i < SIGNALS; i++) {
        signal(signals[i], handler);
        sigaddset(&set, signals[i]);
    }
    sigprocmask(SIG_BLOCK, &set, &before);
    for (int i = 0; i < SIGNALS; i++)
        raise(signals[i]);
    copies(100);
    own(100);
    printf("held back: %d handled\n", handled);
    sigprocmask(SIG_SETMASK, &before, NULL);
    printf("let through: %d handled\n", handled);
    return 0;
}
