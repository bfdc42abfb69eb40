/* harness_ends_jump WHAT (x86-64): a thread leaves the harness while it works there, some instructions after the first at
 * which the harness sends its handler away.
 *   jump    by a jump; it asks again
 *   silent  by a jump, and asks nothing any more
 *   exit    by the end of the thread */
#include "harness_host.h"
#include <setjmp.h>
#include <sys/syscall.h>

enum { ROUNDS = 300 };
static aclshim_scope scope;
static const char *what;
static sigjmp_buf back;
static int busy;
static _Atomic int64_t again;

static void stepped(int number)
{
    (void)number;
    if (aclshim_count(scope, NULL) != ACLSHIM_BUSY || ++busy < 100)
        return;
    if (!strcmp(what, "exit"))
        syscall(SYS_exit, 0);
    siglongjmp(back, 1);
}

static void *leaves(void *unused)
{
#ifdef __x86_64__
    if (sigsetjmp(back, 1) == 0) {
        __asm__ volatile("lea -256(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 256(%%rsp), %%rsp" ::: "memory",
                         "cc");
        aclshim_count(scope, NULL);
    }
#endif
    if (!strcmp(what, "jump"))
        again = aclshim_count(scope, NULL);
    pause();
    return unused;
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = stepped};
    what = argc > 1 ? argv[1] : "";
    begin();
    sigaction(SIGTRAP, &action, NULL);
    aclshim_fail_exit(9);
    scope = aclshim_scope_begin("scope", ACLSHIM_WHOLE_PROCESS);
    aclshim_expect_calls(scope, NULL, 0, UINT64_MAX);
    pthread_t thread = start(leaves);
    if (!strcmp(what, "exit"))
        pthread_join(thread, NULL);
    else
        while (aclshim_count(scope, NULL) != ACLSHIM_BUSY)
            usleep(1000);
    while (!strcmp(what, "jump") && again == 0)
        usleep(1000);
    say("again", again);
    int sent_away = 0, copied = 0;
    for (int i = 0; i < ROUNDS; i++) {
        copied += copy() == 0;
        sent_away += aclshim_count(scope, NULL) == ACLSHIM_BUSY;
        sent_away += aclshim_scope_begin("more", ACLSHIM_THIS_THREAD) == ACLSHIM_BUSY;
    }
    printf("copied %d sent away %d\n", copied, sent_away);
    return 0;
}
