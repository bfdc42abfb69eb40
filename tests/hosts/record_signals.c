/* record_signals HOW SIGNALS: one thread calls at full speed while a timer interrupts it 5,000 times a second, and the
 * handler calls too. HOW: `here`, or `stack` (the handler has a stack of its own). */
#include "record_host.h"
#include <time.h>

static volatile uint64_t handled;

static void handler(int number)
{
    (void)number;
    call(1);
    handled++;
}

int main(int argc, char **argv)
{
    begin();
    if (argc < 3)
        return 2;
    uint64_t signals = (uint64_t)atoll(argv[2]);
    static char room[64 * 1024];
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    if (!strcmp(argv[1], "stack")) {
        stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
        sigaltstack(&stack, NULL);
        action.sa_flags |= SA_ONSTACK;
    }
    take(0);
    take(1);
    sigaction(SIGUSR1, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec every = {.it_value = {.tv_nsec = 200000}, .it_interval = {.tv_nsec = 200000}};
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &every, NULL) != 0)
        return 3;
    while (handled < signals)
        call(0);
    timer_delete(timer);
    printf("handled\n");
    return 0;
}
