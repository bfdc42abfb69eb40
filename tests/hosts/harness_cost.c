/* harness_cost [gone]: how many instructions a call takes: before the first scope, in one, and after it (x86-64). With
 * `gone` the scope is one of a thread that ends without it. */
#include "harness_host.h"
#include <sys/syscall.h>

#ifdef __x86_64__
static volatile uint64_t steps;

static void step(int number)
{
    (void)number;
    steps++;
}

/* The least of several: what else the shim has to do once is not counted. */
static uint64_t cost(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 16; i++) {
        steps = 0;
        __asm__ volatile("lea -256(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 256(%%rsp), %%rsp" ::: "memory", "cc");
        int code = aclrtMemset(NULL, 0, 0, 0);
        __asm__ volatile("lea -256(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; lea 256(%%rsp), %%rsp" ::: "memory", "cc");
        if (code != 5)
            _exit(95);
        least = steps < least ? steps : least;
    }
    return least;
}

static void *forget(void *thread)
{
    *(pid_t *)thread = (pid_t)syscall(SYS_gettid);
    aclshim_inject(aclshim_scope_begin("one", ACLSHIM_THIS_THREAD), "aclrtMemcpy return=7");
    return NULL;
}
#endif

int main(int argc, char **argv)
{
    (void)argv;
    begin();
#ifdef __x86_64__
    struct sigaction action = {.sa_handler = step};
    sigaction(SIGTRAP, &action, NULL);
    up(64);
    uint64_t before = cost(), within = 0;
    if (argc > 1) {
        pthread_t thread;
        pid_t gone;
        pthread_create(&thread, NULL, forget, &gone);
        pthread_join(thread, NULL);
        while (syscall(SYS_tgkill, getpid(), gone, 0) == 0)
            sched_yield();
        within = cost();
        aclshim_scope_end(aclshim_scope_begin("mine", ACLSHIM_THIS_THREAD));
    } else {
        aclshim_scope scope = aclshim_scope_begin("one", ACLSHIM_WHOLE_PROCESS);
        aclshim_scope inner = aclshim_scope_begin("two", ACLSHIM_THIS_THREAD);
        aclshim_inject(inner, "aclrtMemcpy return=7");
        within = cost();
        aclshim_scope_end(inner);
        aclshim_scope_end(scope);
    }
    uint64_t after = cost();
    printf("%s, %s\n", within > before ? "more within" : "no more within", after == before ? "as before" : "not as before");
    fprintf(stderr, "%llu %llu %llu\n", (unsigned long long)before, (unsigned long long)within, (unsigned long long)after);
#endif
    return 0;
}
