/* record_stepped HOW BEFORE STRIDE LESS WHERE: one thread after the other makes BEFORE calls, then one that a signal interrupts,
 * then a few: after STRIDE instructions, after twice as many, and so on, until it has fewer. Its room is LESS less.
 * The handler calls (HOW is `copy`), or it makes a child (`fork`) that calls in the handler, goes on with what was
 * interrupted, and calls again. Signals come where any could come (WHERE is `open`), or also where most are held back
 * (`anywhere`). Which call is which its size tells. */
#define _GNU_SOURCE
#include "guest_host.h"
#include <pthread.h>
#include <ucontext.h>

enum { EARLIER = 1, INTERRUPTED, OF_THE_HANDLER, OF_THE_CHILD, LATER };

static int forks, before, less, is_anywhere;
static volatile long left;
static volatile int is_child;

static void sized(size_t which, int n)
{
    size_t room = which - (which == INTERRUPTED ? (size_t)less : 0);
    while (n-- > 0)
        if (aclrtMemcpyAsync((void *)0x1000, room, (void *)0x2000, which, ACL_MEMCPY_HOST_TO_HOST, NULL) != 0)
            _exit(70);
}

static void handler(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    ucontext_t *interrupted = context;
    /* This one cannot be held back. Where others are, none of them would come. */
    if (sigismember(&interrupted->uc_sigmask, SIGUSR1) && !is_anywhere)
        return;
    if (--left > 0)
        return;
    interrupted->uc_mcontext.gregs[REG_EFL] &= ~0x100L;
    if (!forks) {
        sized(OF_THE_HANDLER, 1);
        return;
    }
    pid_t child = fork();
    if (child != 0) {
        reap(child);
        return;
    }
    is_child = 1;
    sized(OF_THE_HANDLER, 1);
}

static void *stepped(void *unused)
{
    sized(EARLIER, before);
    /* The processor's trap flag: from here on, and off again. The red zone is left alone. */
    __asm__ volatile("lea -256(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 256(%%rsp), %%rsp" ::: "memory", "cc");
    sized(INTERRUPTED, 1);
    __asm__ volatile("lea -256(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; lea 256(%%rsp), %%rsp" ::: "memory", "cc");
    if (is_child) {
        sized(OF_THE_CHILD, 2);
        _exit(0);
    }
    sized(LATER, 5);
    return unused;
}

int main(int argc, char **argv)
{
    limit();
    if (argc < 6)
        return 2;
    forks = !strcmp(argv[1], "fork");
    before = atoi(argv[2]);
    long stride = atol(argv[3]), threads = 0;
    less = atoi(argv[4]);
    is_anywhere = !strcmp(argv[5], "anywhere");
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    sized(EARLIER, 1); /* so that no thread of ours is started with the flag set */
    while (left <= 0) {
        pthread_t thread;
        left = stride * ++threads;
        pthread_create(&thread, NULL, stepped, NULL);
        pthread_join(thread, NULL);
    }
    printf("%ld\n", threads);
    return 0;
}
