/* run_signals: says each signal that it gets, in order, until the last one of all. `run_signals plain` leaves signals
 * alone and waits for a line on standard input. Both copy once before and once after. */
#include "guest_host.h"

int main(int argc, char **argv)
{
    limit();
    copies(1);
    (void)argv;
    if (argc > 1) {
        printf("ready %d\n", (int)getpid());
        fflush(stdout);
        int got = getchar();
        copies(1);
        printf("got %d\n", got);
        return 0;
    }
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGALRM);
    sigprocmask(SIG_BLOCK, &all, NULL);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    for (;;) {
        siginfo_t info;
        int signal = sigwaitinfo(&all, &info);
        if (signal < 0)
            continue;
        printf("%d %d\n", signal, info.si_code == SI_QUEUE ? info.si_value.sival_int : 0);
        fflush(stdout);
        if (signal == SIGRTMAX)
            break;
    }
    copies(1);
    return 0;
}
