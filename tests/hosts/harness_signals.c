/* harness_signals WHAT: handlers that copy, and ask what was copied.
 *   async   a timer's, which comes at any time
 *   fault   one for a fault inside a copy, which jumps out
 *   step    after every instruction of what the harness does, also where only it can be interrupted (x86-64) */
#include "harness_host.h"
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/time.h>

static aclshim_scope scope;
static volatile sig_atomic_t handled, busy, strange;
static volatile uint64_t made, steps;

static void copies_and_asks(int number)
{
    (void)number;
    int before = errno;
    if (copy() != 0)
        strange = 1;
    made++;
    int64_t count = aclshim_count(scope, NULL);
    aclshim_scope own = aclshim_scope_begin("handler", ACLSHIM_THIS_THREAD);
    int64_t ended = own > 0 ? aclshim_scope_end(own) : own;
    if (count == ACLSHIM_BUSY || own == ACLSHIM_BUSY)
        busy++;
    else if (count < 0 || (ended != 0 && ended != ACLSHIM_BUSY))
        strange = 1000 - (int)count;
    handled++;
    errno = before;
}

static int async(void)
{
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = copies_and_asks, .sa_flags = SA_RESTART};
    sigaction(SIGVTALRM, &action, NULL);
    scope = aclshim_scope_begin("async", ACLSHIM_WHOLE_PROCESS);
    setitimer(ITIMER_VIRTUAL, &often, NULL);
    uint64_t own_calls = 0;
    struct aclshim_call calls[8];
    for (int i = 0; handled < 50; i++) {
        up(64), own_calls++;
        aclshim_calls(scope, "size=64", calls, 8);
        aclshim_scope inner = aclshim_scope_begin("inner", ACLSHIM_THIS_THREAD);
        batch(2, 64), own_calls++;
        aclshim_findings(inner, NULL, NULL, 0);
        int64_t ended = aclshim_scope_end(inner);
        if (ended != 0)
            strange = (int)ended;
        if (i % 64 == 63)
            aclshim_mark("on");
    }
    setitimer(ITIMER_VIRTUAL, &never, NULL);
    printf("all %d strange %d busy %d\n", (uint64_t)aclshim_count(scope, NULL) == own_calls + made, strange, busy);
    say("end", aclshim_scope_end(scope));
    return 0;
}

static sigjmp_buf back;
static int64_t asked;

static void faulted(int number)
{
    (void)number;
    asked = aclshim_count(scope, NULL);
    siglongjmp(back, 1);
}

static int fault(void)
{
    struct sigaction action = {.sa_handler = faulted};
    sigaction(SIGSEGV, &action, NULL);
    size_t *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), first = 0, failed;
    void *pointer = device;
    aclrtMemcpyBatchAttr attr;
    memset(&attr, 0, sizeof attr);
    scope = aclshim_scope_begin("fault", ACLSHIM_THIS_THREAD);
    if (sigsetjmp(back, 1) == 0)
        aclrtMemcpyBatch(&pointer, none, &pointer, none, 1, &attr, &first, 1, &failed);
    say("in the handler", asked);
    struct aclshim_call call;
    aclshim_calls(scope, NULL, &call, 1);
    say("state", call.state);
    /* And in what is handed to the harness itself. */
    if (sigsetjmp(back, 1) == 0)
        aclshim_count(scope, (const char *)none);
    say("a bad selector", asked);
    if (sigsetjmp(back, 1) == 0)
        aclshim_calls(scope, NULL, (struct aclshim_call *)none, 1);
    say("bad room", asked);
    up(64);
    say("still", aclshim_count(scope, NULL));
    say("end", aclshim_scope_end(scope));
    return 0;
}

static uint64_t every = 1;

static void stepped(int number)
{
    if (++steps % every == 0)
        copies_and_asks(number);
}

static int step(void)
{
#ifdef __x86_64__
    struct sigaction action = {.sa_handler = stepped};
    sigaction(SIGTRAP, &action, NULL);
    scope = aclshim_scope_begin("step", ACLSHIM_THIS_THREAD);
    aclshim_expect_calls(scope, NULL, 0, UINT64_MAX);
    __asm__ volatile("lea -256(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 256(%%rsp), %%rsp" ::: "memory", "cc");
    aclshim_scope inner = aclshim_scope_begin("inner", ACLSHIM_THIS_THREAD);
    copy();
    int64_t count = aclshim_count(inner, "size=0");
    int64_t ended = aclshim_scope_end(inner);
    __asm__ volatile("lea -256(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; lea 256(%%rsp), %%rsp" ::: "memory", "cc");
    printf("strange %d, ours seen %d, inner %d, sent away %s\n", strange, count >= 1, (int)ended, busy ? "some" : "none");
    printf("balance %d\n", (uint64_t)aclshim_count(scope, NULL) <= made + 1);
    int64_t failed = aclshim_scope_end(scope);
    printf("told %d\n", failed == (busy ? 1 : 0));
    scope = aclshim_scope_begin("then", ACLSHIM_THIS_THREAD);
    copy();
    say("then", aclshim_count(scope, NULL));
    say("end", aclshim_scope_end(scope));
#else
    (void)stepped;
#endif
    return 0;
}

int main(int argc, char **argv)
{
    begin();
    every = argc > 2 ? (uint64_t)atoi(argv[2]) : 1;
    if (argc < 2)
        return 2;
    if (!strcmp(argv[1], "async"))
        return async();
    if (!strcmp(argv[1], "fault"))
        return fault();
    return step();
}
