/* guest_step HOW EVERY: a signal after every single instruction of a few calls, the first one too; the handler calls
 * after every EVERY of them. HOW: `here`, or `stack` (the handler has a stack of its own). */
#include "guest_host.h"

static volatile uint64_t steps, handled;
static uint64_t every = 1;

static int set(void)
{
    return aclrtMemset(NULL, 0, 0, 0);
}

static void handler(int number)
{
    (void)number;
    if (++steps % every != 0)
        return;
    int before = errno;
    set();
    handled++;
    errno = before;
}

int main(int argc, char **argv)
{
    limit();
    enum { LOOPED = 20 };
    int wrong = 0;
    every = argc > 2 ? (uint64_t)atoi(argv[2]) : 1;
#ifdef __x86_64__
    static char room[64 * 1024];
    struct sigaction action = {.sa_handler = handler};
    if (argc > 1 && !strcmp(argv[1], "stack")) {
        stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
        sigaltstack(&stack, NULL);
        action.sa_flags = SA_ONSTACK;
    }
    sigaction(SIGTRAP, &action, NULL);
    for (int i = 0; i < LOOPED; i++) {
        errno = 51;
        /* The processor's trap flag: from here on, and off again. The red zone is left alone. */
        __asm__ volatile("lea -256(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 256(%%rsp), %%rsp" ::: "memory", "cc");
        int code = set();
        __asm__ volatile("lea -256(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; lea 256(%%rsp), %%rsp" ::: "memory", "cc");
        wrong += code != 5 || errno != 51;
    }
#else
    (void)handler;
    for (int i = 0; i < LOOPED; i++)
        wrong += set() != 5;
#endif
    own(LOOPED);
    own(handled);
    printf("%d wrong\n", wrong);
    return 0;
}
